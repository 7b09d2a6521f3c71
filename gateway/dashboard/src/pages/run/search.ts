import { compact, flag, oneOf, text, whole } from '../../app/search'

export const OUTCOME_STATUSES = ['completed', 'failed', 'cancelled', 'sent_unknown'] as const

/** Filters of a run's questions, and the open cell. */
export interface QuestionsSearch {
  q?: string | undefined
  target?: string | undefined
  benchmark?: string | undefined
  status?: (typeof OUTCOME_STATUSES)[number] | undefined
  correct?: boolean | undefined
  cell?: number | undefined
}

export function questionsSearch(raw: Record<string, unknown>): QuestionsSearch {
  return compact({
    q: text(raw, 'q'),
    target: text(raw, 'target'),
    benchmark: text(raw, 'benchmark'),
    status: oneOf(raw, 'status', OUTCOME_STATUSES),
    correct: flag(raw, 'correct'),
    cell: whole(raw, 'cell'),
  })
}

/** Filters of a run's calls, and the open call. */
export interface CallsSearch {
  target?: string | undefined
  case?: string | undefined
  call?: string | undefined
}

export function callsSearch(raw: Record<string, unknown>): CallsSearch {
  return compact({ target: text(raw, 'target'), case: text(raw, 'case', 500), call: text(raw, 'call') })
}

/** The events shown. */
export interface EvidenceSearch {
  type?: string | undefined
}

export function evidenceSearch(raw: Record<string, unknown>): EvidenceSearch {
  return compact({ type: text(raw, 'type') })
}
