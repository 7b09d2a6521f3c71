import { useMutation, type UseMutationResult } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { provesNothingStarted, type Shelf, type Submission } from './shelf'

/** The browser keeps nothing: nothing was sent. */
export class NotKept extends Error {}

/**
 * Sends submissions of one kind, and knows of the one that is not settled. `onDone` is told the answer, unless whoever
 * waited for it has left the page or signed in as somebody else.
 */
export function useSubmission<S extends Submission, A>(place: Shelf<S>, send: (submission: S) => Promise<A>, onDone: (answer: A) => void): { start: UseMutationResult<A, Error, S>; open: S | null } {
  const [open, setOpen] = useState<S | null>(() => place.pending())
  const mounted = useRef(true)
  useEffect(() => {
    mounted.current = true
    return () => {
      mounted.current = false
    }
  }, [])
  const start = useMutation({
    mutationFn: (submission: S) => {
      try {
        place.keep(submission)
      } catch {
        return Promise.reject(new NotKept())
      }
      return send(submission)
    },
    onSuccess: (answer, submission) => {
      place.settle(submission.idempotency_key)
      if (!mounted.current) return
      setOpen(null)
      onDone(answer)
    },
    onError: (error, submission) => {
      if (error instanceof NotKept) return
      if (provesNothingStarted(error, submission)) {
        place.settle(submission.idempotency_key)
        if (mounted.current) setOpen(null)
        return
      }
      const unanswered = { ...submission, unanswered: true }
      try {
        place.keep(unanswered)
      } catch {
        // It is kept as it was before the request: the same body with the same key.
      }
      if (mounted.current) setOpen(unanswered)
    },
  })
  return { start, open }
}
