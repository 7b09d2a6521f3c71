import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { LONG_DEADLINE_MS, post } from '../../api/client'
import { randomId } from '../../api/random'
import { VERSION } from '../../submissions/shelf'
import { useSubmission } from '../../submissions/useSubmission'
import { runShelf, type RunSubmission } from './submission'

/** A new submission of a frozen manifest. Its key is made now, once. */
export function submissionOf(actor: string, manifest: Record<string, unknown>): RunSubmission {
  return { version: VERSION, actor, manifest, idempotency_key: randomId(), unanswered: false }
}

/** Starts runs, and knows of the start that is not settled. */
export function useStart(actor: string) {
  const navigate = useNavigate()
  const place = useMemo(() => runShelf(actor), [actor])
  return useSubmission(
    place,
    ({ manifest, idempotency_key }: RunSubmission) => post('/runs', { body: { manifest, idempotency_key }, deadlineMs: LONG_DEADLINE_MS }),
    (run) => void navigate({ to: '/runs/$runId', params: { runId: run.id } }),
  )
}
