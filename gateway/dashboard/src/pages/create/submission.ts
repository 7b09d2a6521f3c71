// A start that was sent, or is about to be: kept in this tab until its answer is known, so that a lost answer never turns
// into a second run. Written before the request; what cannot be kept is not sent.
import { stringifyExact, parseExact } from '../../api/exactJson'
import { ApiError } from '../../api/errors'

const VERSION = 1
const MAX_BYTES = 2 * 1024 * 1024

/** The exact request of a start. */
export interface Submission {
  version: typeof VERSION
  actor: string
  manifest: Record<string, unknown>
  idempotency_key: string
  /** Whether an attempt was made whose answer never came. */
  unanswered: boolean
}

function keyOf(actor: string): string {
  return `sr-bench-submission:${actor}`
}

/** Keeps a submission. Throws when the browser does not: then nothing may be sent. */
export function keep(submission: Submission): void {
  const text = stringifyExact(submission)
  if (text.length > MAX_BYTES) throw new Error('too large')
  sessionStorage.setItem(keyOf(submission.actor), text)
  if (sessionStorage.getItem(keyOf(submission.actor)) !== text) throw new Error('not kept')
}

/** The submission of `actor` that is not settled. What was altered or is another account's is none of ours. */
export function pending(actor: string): Submission | null {
  let text: string | null
  try {
    text = sessionStorage.getItem(keyOf(actor))
  } catch {
    return null
  }
  if (text === null || text.length > MAX_BYTES) return null
  try {
    const found = parseExact(text) as Partial<Submission> | null
    const whole =
      found !== null &&
      found.version === VERSION &&
      found.actor === actor &&
      typeof found.idempotency_key === 'string' &&
      found.idempotency_key.length > 0 &&
      typeof found.manifest === 'object' &&
      found.manifest !== null &&
      /^[0-9a-f]{64}$/.test(String(found.manifest.plan_sha256))
    return whole ? (found as Submission) : null
  } catch {
    return null
  }
}

/** Forgets a submission once it is settled; one with another key is not touched. */
export function settle(actor: string, idempotencyKey: string): void {
  if (pending(actor)?.idempotency_key === idempotencyKey) sessionStorage.removeItem(keyOf(actor))
}

/**
 * Whether `error` proves that no run was started: the service says so, or refused the only attempt there was. Anything
 * else, an outage or a refusal after an unanswered attempt, leaves the question open.
 */
export function provesNothingStarted(error: unknown, submission: Submission): boolean {
  if (!(error instanceof ApiError)) return false
  if (error.body.dispatch_started === false) return true
  return !submission.unanswered && error.trouble === 'refused' && error.status >= 400 && error.status < 500 && error.status !== 408
}
