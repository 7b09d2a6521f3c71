import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { LONG_DEADLINE_MS, post } from '../../api/client'
import { randomId } from '../../api/random'
import { shelf, VERSION, type Shelf, type Submission } from '../../submissions/shelf'
import { useSubmission } from '../../submissions/useSubmission'

/** The creation of an offline estimate. */
export interface ReplaySubmission extends Submission {
  baseline: string
  preview: string
}

function replayShelf(actor: string): Shelf<ReplaySubmission> {
  return shelf(`sr-bench-replay:${actor}`, actor, ({ baseline, preview }) => [baseline, preview].every((id) => typeof id === 'string' && id.length > 0))
}

export function replayOf(actor: string, baseline: string, preview: string): ReplaySubmission {
  return { version: VERSION, actor, baseline, preview, idempotency_key: randomId(), unanswered: false }
}

/** What goes over the wire. */
export function replayBody({ baseline, preview, idempotency_key }: ReplaySubmission) {
  return { baseline_run_id: baseline, preview_run_id: preview, idempotency_key }
}

/** Makes offline estimates, and knows of the one that is not settled. */
export function useReplay(actor: string) {
  const navigate = useNavigate()
  const place = useMemo(() => replayShelf(actor), [actor])
  return useSubmission(
    place,
    (submission: ReplaySubmission) => post('/replays', { body: replayBody(submission), deadlineMs: LONG_DEADLINE_MS }),
    (run) => void navigate({ to: '/runs/$runId', params: { runId: run.id } }),
  )
}
