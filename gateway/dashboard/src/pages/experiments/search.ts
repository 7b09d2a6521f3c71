import { compact, whole } from '../../app/search'

export interface ExperimentsSearch {
  after?: number | undefined
}

export function experimentsSearch(raw: Record<string, unknown>): ExperimentsSearch {
  return compact({ after: whole(raw, 'after', 1) })
}
