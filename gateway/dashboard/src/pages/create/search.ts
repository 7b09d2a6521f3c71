import { compact, oneOf, text, texts } from '../../app/search'
import { ROLES, type Role } from './experimentPart'

/** Where a new evaluation starts from. */
export interface CreateSearch {
  mode?: 'live' | 'preview' | undefined
  dataset?: string | undefined
  profile?: 'smoke' | 'quick' | 'standard' | undefined
  target?: string[] | undefined
  baseline?: string | undefined
  experiment?: string | undefined
  role?: Role | undefined
}

export function createSearch(raw: Record<string, unknown>): CreateSearch {
  return compact({
    mode: oneOf(raw, 'mode', ['live', 'preview']),
    dataset: text(raw, 'dataset'),
    profile: oneOf(raw, 'profile', ['smoke', 'quick', 'standard']),
    target: texts(raw, 'target'),
    baseline: text(raw, 'baseline'),
    experiment: text(raw, 'experiment'),
    role: oneOf(raw, 'role', ROLES),
  })
}
