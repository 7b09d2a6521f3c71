// Requests that start something: kept in this tab, with their key, from before they are sent until their answer is known, so
// that a lost answer never turns into a second start. What cannot be kept is not sent.
import { parseExact, stringifyExact } from '../api/exactJson'
import { ApiError } from '../api/errors'

export const VERSION = 1
const MAX_BYTES = 2 * 1024 * 1024

/** The exact request of a start, whose it is, and whether an attempt was made whose answer never came. */
export interface Submission {
  version: typeof VERSION
  actor: string
  idempotency_key: string
  unanswered: boolean
}

/** A place for one unsettled submission of an account. */
export interface Shelf<S extends Submission> {
  /** Keeps a submission. Throws when the browser does not: then nothing may be sent. */
  keep: (submission: S) => void
  /** The submission that is not settled. What was altered or is another account's is none of ours. */
  pending: () => S | null
  /** Forgets a submission once it is settled; one with another key is not touched. */
  settle: (idempotencyKey: string) => void
}

/** `key` names the place, `actor` whose it is; `isWhole` says whether what was found there is a request of this kind. */
export function shelf<S extends Submission>(key: string, actor: string, isWhole: (found: Partial<S>) => boolean): Shelf<S> {
  const pending = (): S | null => {
    const found = read(key) as Partial<S> | null
    return found && isOwn(found, actor) && isWhole(found) ? (found as S) : null
  }
  return {
    keep(submission) {
      const text = stringifyExact(submission)
      if (text.length > MAX_BYTES) throw new Error('too large')
      sessionStorage.setItem(key, text)
      if (sessionStorage.getItem(key) !== text) throw new Error('not kept')
    },
    pending,
    settle(idempotencyKey) {
      if (pending()?.idempotency_key === idempotencyKey) sessionStorage.removeItem(key)
    },
  }
}

function read(key: string): unknown {
  try {
    const text = sessionStorage.getItem(key)
    return text === null || text.length > MAX_BYTES ? null : parseExact(text)
  } catch {
    // A browser that keeps nothing, or a text that is no JSON: there is nothing of ours.
    return null
  }
}

function isOwn(found: Partial<Submission>, actor: string): boolean {
  return typeof found === 'object' && found.version === VERSION && found.actor === actor && typeof found.idempotency_key === 'string' && found.idempotency_key.length > 0
}

/** Whether `value` is a SHA-256 in small hex digits. */
export function isSha256(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

/**
 * Whether `error` proves that nothing was started: the service says so, or refused the only attempt there was. Anything
 * else, an outage or a refusal after an unanswered attempt, leaves the question open.
 */
export function provesNothingStarted(error: unknown, submission: Submission): boolean {
  if (!(error instanceof ApiError)) return false
  if (error.body.dispatch_started === false) return true
  return !submission.unanswered && error.trouble === 'refused' && error.status >= 400 && error.status < 500 && error.status !== 408
}
