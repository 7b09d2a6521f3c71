// The part of a run in an experiment. Pure.

export const ROLES = ['baseline', 'initial', 'candidate', 'validation', 'smoke', 'preview', 'estimate', 'recovery'] as const
export type Role = (typeof ROLES)[number]

export interface ExperimentPart {
  id: string
  role: Role
  /** What changed, or what the run is to show; empty when nobody said. */
  hypothesis: string
}

/** The part that an address asks for. */
export function partOf(search: { experiment?: string | undefined; role?: Role | undefined; mode?: string | undefined }): ExperimentPart | null {
  return search.experiment ? { id: search.experiment, role: search.role ?? (search.mode === 'preview' ? 'preview' : 'candidate'), hypothesis: '' } : null
}

/** The roles that fit a run of these kinds of targets; the planner refuses any other. */
export function fittingRoles(mode: string, profile: string, kinds: ReadonlySet<string>, recovery = false): Role[] {
  if (recovery) return ['recovery']
  if (mode !== 'live') return [mode === 'preview' ? 'preview' : 'estimate']
  const reference: Role[] = kinds.has('single') ? ['baseline'] : []
  if (profile === 'standard') return [...reference, 'validation']
  return [...reference, ...(kinds.has('mom') ? (['initial', 'candidate'] as const) : []), ...(profile === 'smoke' ? (['smoke'] as const) : [])]
}

/** How a manifest says it. */
export function partInManifest(part: ExperimentPart | null): { experiment?: { id: string; role: Role; hypothesis?: string } } {
  if (part === null) return {}
  const said = part.hypothesis.trim()
  return { experiment: { id: part.id, role: part.role, ...(said ? { hypothesis: said } : {}) } }
}
