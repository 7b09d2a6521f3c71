import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { LONG_DEADLINE_MS, post } from '../../api/client'
import { randomId } from '../../api/random'
import { keep, pending, provesNothingStarted, settle, type Submission } from './submission'

/** The browser keeps nothing: nothing was sent. */
export class NotKept extends Error {}

/** A new submission of a frozen manifest. Its key is made now, once. */
export function submissionOf(actor: string, manifest: Record<string, unknown>): Submission {
  return { version: 1, actor, manifest, idempotency_key: randomId(), unanswered: false }
}

/** Sends submissions, and knows of the one that is not settled. */
export function useStart(actor: string) {
  const navigate = useNavigate()
  const [open, setOpen] = useState<Submission | null>(() => pending(actor))
  const mounted = useRef(true)
  useEffect(() => {
    mounted.current = true
    return () => {
      mounted.current = false
    }
  }, [])
  const start = useMutation({
    mutationFn: (submission: Submission) => {
      try {
        keep(submission)
      } catch {
        return Promise.reject(new NotKept())
      }
      const { manifest, idempotency_key } = submission
      return post('/runs', { body: { manifest, idempotency_key }, deadlineMs: LONG_DEADLINE_MS })
    },
    onSuccess: (run, submission) => {
      settle(actor, submission.idempotency_key)
      // Whoever has left the form, or signed in as somebody else, is not taken to a run.
      if (!mounted.current) return
      setOpen(null)
      void navigate({ to: '/runs/$runId', params: { runId: run.id } })
    },
    onError: (error, submission) => {
      if (error instanceof NotKept) return
      if (provesNothingStarted(error, submission)) {
        settle(actor, submission.idempotency_key)
        if (mounted.current) setOpen(null)
        return
      }
      const unanswered = { ...submission, unanswered: true }
      try {
        keep(unanswered)
      } catch {
        // It is kept as it was before the request: the same body with the same key.
      }
      if (mounted.current) setOpen(unanswered)
    },
  })
  return { start, open }
}
