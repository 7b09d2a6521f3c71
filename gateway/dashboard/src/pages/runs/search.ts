import { compact, oneOf, text } from '../../app/search'

export const STATUSES = ['queued', 'running', 'completed', 'failed', 'cancelled', 'interrupted'] as const
export const MODES = ['live', 'preview', 'replay'] as const
export const PROFILES = ['smoke', 'quick', 'standard'] as const

/** Filters of the runs list and the cursors of the pages gone through. */
export interface RunsSearch {
  q?: string | undefined
  status?: (typeof STATUSES)[number] | undefined
  mode?: (typeof MODES)[number] | undefined
  profile?: (typeof PROFILES)[number] | undefined
  after?: string | undefined
}

export function runsSearch(raw: Record<string, unknown>): RunsSearch {
  return compact({
    q: text(raw, 'q'),
    status: oneOf(raw, 'status', STATUSES),
    mode: oneOf(raw, 'mode', MODES),
    profile: oneOf(raw, 'profile', PROFILES),
    after: text(raw, 'after'),
  })
}
