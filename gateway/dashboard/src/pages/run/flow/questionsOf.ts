import type { Picked } from '../../../charts/Sankey'
import { OUTCOME_STATUSES, type QuestionsSearch } from '../search'

/** The filter of the questions that went along a band. What the questions cannot be filtered by is left out. */
export function questionsOf(target: string | undefined, picked: Picked): QuestionsSearch {
  const { decision, model, outcome } = picked
  const status = OUTCOME_STATUSES.find((name) => name === (outcome === 'right' || outcome === 'wrong' ? 'completed' : outcome))
  return {
    target,
    decision: decision ?? undefined,
    model: model ?? undefined,
    status,
    correct: outcome === 'right' ? true : outcome === 'wrong' ? false : undefined,
  }
}
