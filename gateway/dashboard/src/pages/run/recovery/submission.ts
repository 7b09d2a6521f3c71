// A recovery is kept per account and parent run: another run's recovery can be made meanwhile.
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { LONG_DEADLINE_MS, post, type Answer, type Body } from '../../../api/client'
import { randomId } from '../../../api/random'
import { isSha256, shelf, VERSION, type Shelf, type Submission } from '../../../submissions/shelf'
import { useSubmission } from '../../../submissions/useSubmission'

export type Plan = Answer<'/runs/{run_id}/recover-plan', 'post'>
export type Mode = 'undispatched' | 'failed'
type Request = Body<'/runs/{run_id}/recover'>

/** The exact request of a recovery. */
export interface RecoverySubmission extends Submission {
  parent: string
  request: Omit<Request, 'idempotency_key'>
}

function recoveryShelf(actor: string, parent: string): Shelf<RecoverySubmission> {
  return shelf(`sr-bench-recovery:${actor}:${parent}`, actor, (found) => found.parent === parent && isWhole(found.request))
}

function isWhole(request: Partial<Request> | undefined): boolean {
  return (
    typeof request === 'object' &&
    isSha256(request.plan_sha256) &&
    (request.mode === 'undispatched' || (request.mode === 'failed' && request.acknowledge_new_attempt === true)) &&
    Array.isArray(request.cells) &&
    request.cells.length > 0
  )
}

/** A new submission of reviewed cells. Its key is made now, once. */
export function recoveryOf(actor: string, plan: Plan, cells: Plan['eligible_cells'], acknowledged: boolean): RecoverySubmission {
  return {
    version: VERSION,
    actor,
    parent: plan.parent_run_id,
    idempotency_key: randomId(),
    unanswered: false,
    request: {
      mode: plan.mode as Mode,
      plan_sha256: plan.plan_sha256,
      cells: cells.map(({ case_id, target_id }) => ({ case_id, target_id })),
      ...(acknowledged ? { acknowledge_new_attempt: true } : {}),
    },
  }
}

/** Starts recoveries of a run, and knows of the one that is not settled. */
export function useRecovery(actor: string, parent: string) {
  const navigate = useNavigate()
  const place = useMemo(() => recoveryShelf(actor, parent), [actor, parent])
  return useSubmission(
    place,
    ({ request, idempotency_key }: RecoverySubmission) =>
      post('/runs/{run_id}/recover', { path: { run_id: parent }, body: { ...request, idempotency_key }, deadlineMs: LONG_DEADLINE_MS }),
    (child) => void navigate({ to: '/runs/$runId', params: { runId: child.id } }),
  )
}
