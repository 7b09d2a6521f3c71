import { compact, flag, oneOf, text, texts, whole } from '../../app/search'

const COSTS = ['total', 'subject', 'neutral'] as const
const SCALES = ['log', 'linear'] as const
export const OUTCOMES = ['win', 'loss', 'both_right', 'both_wrong'] as const
const SORTS = ['outcome', 'cost_delta', 'latency_delta'] as const
export const DIFFS = ['words', 'lines', 'off'] as const
export const MOST_CANDIDATES = 32

/** The runs that are compared, what is shown of them, and the question that is open. */
export interface CompareSearch {
  baseline?: string | undefined
  candidate?: string[] | undefined
  /** Only runs of this experiment are offered. */
  experiment?: string | undefined
  /** Said by a click alone: runs outside the experiment are offered, too. */
  scope?: 'all' | undefined
  /** Tenths of a percentage point of quality that may be lost. */
  margin?: number | undefined
  cost?: (typeof COSTS)[number] | undefined
  scale?: (typeof SCALES)[number] | undefined
  /** The run and the target whose questions, plan and routing are shown. */
  of?: string | undefined
  target?: string | undefined
  /** The run that the plan is held against; the baseline without it. */
  against?: string | undefined
  outcome?: (typeof OUTCOMES)[number] | undefined
  benchmark?: string | undefined
  by?: (typeof SORTS)[number] | undefined
  desc?: boolean | undefined
  case?: string | undefined
  at?: number | undefined
  diff?: (typeof DIFFS)[number] | undefined
}

export function compareSearch(raw: Record<string, unknown>): CompareSearch {
  const margin = whole(raw, 'margin', 1)
  return compact({
    baseline: text(raw, 'baseline'),
    candidate: unique(texts(raw, 'candidate', MOST_CANDIDATES)),
    experiment: text(raw, 'experiment'),
    scope: oneOf(raw, 'scope', ['all']) ?? oneOf(raw, 'comparison_scope', ['all']),
    margin: margin !== undefined && margin < 1000 ? margin : undefined,
    cost: oneOf(raw, 'cost', ['subject', 'neutral']),
    scale: oneOf(raw, 'scale', ['linear']),
    of: text(raw, 'of'),
    target: text(raw, 'target'),
    against: text(raw, 'against'),
    outcome: oneOf(raw, 'outcome', OUTCOMES),
    benchmark: text(raw, 'benchmark'),
    by: oneOf(raw, 'by', SORTS),
    desc: flag(raw, 'desc') || undefined,
    case: text(raw, 'case', 500),
    at: whole(raw, 'at'),
    diff: oneOf(raw, 'diff', ['lines', 'off']),
  })
}

function unique(found: string[] | undefined): string[] | undefined {
  return found && [...new Set(found)]
}
