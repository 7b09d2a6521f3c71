import { compact, flag, oneOf, text, whole } from '../../app/search'

export const OUTCOME_STATUSES = ['completed', 'failed', 'cancelled', 'sent_unknown'] as const
export const CALL_STATUSES = ['sent', 'completed', 'failed', 'cancelled', 'sent_unknown', 'not_accepted'] as const
export const ROLES = ['subject', 'judge', 'simulator'] as const
const ORDERS = ['cost', 'latency', 'ttft'] as const

/** How a list is ordered. */
interface Ordered {
  by?: (typeof ORDERS)[number] | undefined
  desc?: boolean | undefined
}

/** Filters of a run's questions, the open cell, and its place in the list. */
export interface QuestionsSearch extends Ordered {
  q?: string | undefined
  target?: string | undefined
  benchmark?: string | undefined
  status?: (typeof OUTCOME_STATUSES)[number] | undefined
  correct?: boolean | undefined
  reason?: string | undefined
  model?: string | undefined
  decision?: string | undefined
  cell?: number | undefined
  at?: number | undefined
}

export function questionsSearch(raw: Record<string, unknown>): QuestionsSearch {
  return compact({
    q: text(raw, 'q'),
    target: text(raw, 'target'),
    benchmark: text(raw, 'benchmark'),
    status: oneOf(raw, 'status', OUTCOME_STATUSES),
    correct: flag(raw, 'correct'),
    reason: text(raw, 'reason'),
    model: text(raw, 'model', 256),
    decision: text(raw, 'decision', 256),
    by: oneOf(raw, 'by', ORDERS),
    desc: flag(raw, 'desc') || undefined,
    cell: whole(raw, 'cell'),
    at: whole(raw, 'at'),
  })
}

/** Filters of a run's calls, the open call, and its place in the list. */
export interface CallsSearch extends Ordered {
  target?: string | undefined
  case?: string | undefined
  status?: (typeof CALL_STATUSES)[number] | undefined
  role?: (typeof ROLES)[number] | undefined
  reason?: string | undefined
  model?: string | undefined
  decision?: string | undefined
  finish?: string | undefined
  call?: string | undefined
  at?: number | undefined
}

export function callsSearch(raw: Record<string, unknown>): CallsSearch {
  return compact({
    target: text(raw, 'target'),
    case: text(raw, 'case', 500),
    status: oneOf(raw, 'status', CALL_STATUSES),
    role: oneOf(raw, 'role', ROLES),
    reason: text(raw, 'reason'),
    model: text(raw, 'model', 256),
    decision: text(raw, 'decision', 256),
    finish: text(raw, 'finish', 256),
    by: oneOf(raw, 'by', ORDERS),
    desc: flag(raw, 'desc') || undefined,
    call: text(raw, 'call'),
    at: whole(raw, 'at'),
  })
}

/** The events shown. */
export interface EvidenceSearch {
  type?: string | undefined
}

export function evidenceSearch(raw: Record<string, unknown>): EvidenceSearch {
  return compact({ type: text(raw, 'type') })
}
