import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { post } from '../../api/client'
import { randomId } from '../../api/random'
import { shelf, VERSION, type Shelf, type Submission } from '../../submissions/shelf'
import { useSubmission } from '../../submissions/useSubmission'

/** The creation of an experiment. */
export interface ExperimentSubmission extends Submission {
  name: string
}

function experimentShelf(actor: string): Shelf<ExperimentSubmission> {
  return shelf(`sr-bench-experiment:${actor}`, actor, ({ name }) => typeof name === 'string' && name.length > 0)
}

export function creationOf(actor: string, name: string): ExperimentSubmission {
  return { version: VERSION, actor, name: name.trim(), idempotency_key: randomId(), unanswered: false }
}

/** Creates experiments, and knows of the creation that is not settled. */
export function useCreation(actor: string) {
  const navigate = useNavigate()
  const place = useMemo(() => experimentShelf(actor), [actor])
  return useSubmission(
    place,
    ({ name, idempotency_key }: ExperimentSubmission) => post('/experiments', { body: { name, idempotency_key } }),
    (made) => void navigate({ to: '/experiments/$experimentId', params: { experimentId: made.id } }),
  )
}
