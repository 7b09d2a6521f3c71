import { compact, oneOf, text, whole } from '../../app/search'

/** Filters of the dataset library. */
export interface DatasetsSearch {
  q?: string | undefined
  profile?: 'smoke' | 'quick' | 'standard' | 'custom' | undefined
  benchmark?: string | undefined
  page?: number | undefined
}

export function datasetsSearch(raw: Record<string, unknown>): DatasetsSearch {
  return compact({
    q: text(raw, 'q'),
    profile: oneOf(raw, 'profile', ['smoke', 'quick', 'standard', 'custom']),
    benchmark: text(raw, 'benchmark'),
    page: whole(raw, 'page', 2),
  })
}

/** Filters of one dataset's questions, and the open one. */
export interface DatasetSearch {
  tab?: 'coverage' | 'about' | undefined
  q?: string | undefined
  benchmark?: string | undefined
  category?: string | undefined
  cursor?: number | undefined
  case?: string | undefined
}

export function datasetSearch(raw: Record<string, unknown>): DatasetSearch {
  return compact({
    tab: oneOf(raw, 'tab', ['coverage', 'about']),
    q: text(raw, 'q'),
    benchmark: text(raw, 'benchmark'),
    category: text(raw, 'category'),
    cursor: whole(raw, 'cursor', 1),
    case: text(raw, 'case', 500),
  })
}
