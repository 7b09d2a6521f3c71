// What the form holds, what is wrong with it, and the manifest it stands for. Pure.
import type { Catalog, Dataset, Target } from '../../api/types'
import { partInManifest, type ExperimentPart } from './experimentPart'

export type Profile = 'smoke' | 'quick' | 'standard'

/** The limits that the form shows; the planner sets the others. */
const LIMITS = ['max_cost_usd', 'max_run_seconds', 'max_output_tokens', 'concurrency', 'total_timeout_s', 'idle_timeout_s', 'case_timeout_s', 'max_calls_per_case'] as const
export type LimitName = (typeof LIMITS)[number]
/** Generation parameters that the form shows. */
const SAMPLING = ['temperature', 'top_p', 'seed'] as const
export type SamplingName = (typeof SAMPLING)[number]

export interface Form {
  name: string
  mode: 'live' | 'preview'
  profile: Profile
  /** The benchmarks wanted; ignored with a dataset. */
  benchmarks: string[]
  /** A frozen dataset chosen by hand; `null` resolves the benchmarks. */
  dataset: string | null
  targets: string[]
  limits: Record<LimitName, number | null>
  sampling: Record<SamplingName, number | null>
  costPolicy: 'require_priced' | 'capability_only'
  sessionId: string
  conversationId: string
  previewSeed: number | null
  /** The experiment that the run is to belong to. */
  experiment: ExperimentPart | null
}

export const EMPTY: Form = {
  name: '',
  mode: 'live',
  profile: 'smoke',
  benchmarks: [],
  dataset: null,
  targets: [],
  limits: {
    max_cost_usd: 5,
    max_run_seconds: 1800,
    max_output_tokens: 4096,
    concurrency: 8,
    total_timeout_s: 180,
    idle_timeout_s: 30,
    case_timeout_s: 600,
    max_calls_per_case: 32,
  },
  sampling: { temperature: 0, top_p: null, seed: null },
  costPolicy: 'require_priced',
  sessionId: '',
  conversationId: '',
  previewSeed: null,
  experiment: null,
}

/** One reason why the form cannot be reviewed; `key` names the text, `values` what it mentions. */
export interface Problem {
  key:
    | 'needName'
    | 'needScope'
    | 'needTargets'
    | 'previewNeedsMom'
    | 'badLimit'
    | 'concurrencyRange'
    | 'idleAboveTotal'
    | 'totalAboveRun'
    | 'temperatureRange'
    | 'topPRange'
    | 'wholeSeed'
    | 'fixedTokens'
    | 'unusable'
    | 'unpriced'
  values?: Record<string, string | number>
}

/** What a target's registration fixes for every request. */
export function fixedOf(target: Target): Record<string, unknown> {
  return (target.request_params ?? {}) as Record<string, unknown>
}

/** Whether a target has a price for its own model; an empty map or other models alone do not count. */
export function isPriced(target: Target): boolean {
  const prices = Object.keys(target.prices ?? {})
  return target.kind === 'mom' ? prices.length > 0 : prices.includes(target.model)
}

/** Why the form cannot be reviewed, all of it at once. `unusable` are chosen benchmarks that cannot be had. */
export function problemsOf(form: Form, targets: readonly Target[], unusable: readonly string[]): Problem[] {
  const found: Problem[] = []
  const chosen = targets.filter((target) => form.targets.includes(target.id))
  const { limits, sampling } = form
  if (form.name.trim() === '') found.push({ key: 'needName' })
  if (form.dataset === null && form.benchmarks.length === 0) found.push({ key: 'needScope' })
  if (form.dataset === null && unusable.length > 0) found.push({ key: 'unusable', values: { names: unusable.join(', ') } })
  if (chosen.length === 0) found.push({ key: 'needTargets' })
  if (form.mode === 'preview' && chosen.some((target) => target.kind !== 'mom')) found.push({ key: 'previewNeedsMom' })
  for (const name of LIMITS) {
    if (name === 'max_cost_usd' && form.costPolicy === 'capability_only') continue
    const value = limits[name]
    if (value === null || !Number.isFinite(value) || value <= 0) found.push({ key: 'badLimit', values: { name } })
  }
  if ((limits.concurrency ?? 0) > 10_000) found.push({ key: 'concurrencyRange' })
  if ((limits.idle_timeout_s ?? 0) > (limits.total_timeout_s ?? 0)) found.push({ key: 'idleAboveTotal' })
  if ((limits.total_timeout_s ?? 0) > (limits.max_run_seconds ?? 0)) found.push({ key: 'totalAboveRun' })
  if (outside(sampling.temperature, 0, 2)) found.push({ key: 'temperatureRange' })
  if (outside(sampling.top_p, 0, 1)) found.push({ key: 'topPRange' })
  if (sampling.seed !== null && !Number.isSafeInteger(sampling.seed)) found.push({ key: 'wholeSeed' })
  for (const target of chosen) {
    const fixed = fixedOf(target).max_tokens
    if (typeof fixed === 'number' && limits.max_output_tokens !== null && fixed > limits.max_output_tokens) {
      found.push({ key: 'fixedTokens', values: { model: target.model, fixed, cap: limits.max_output_tokens } })
    }
  }
  return found
}

function outside(value: number | null, low: number, high: number): boolean {
  return value !== null && !(value >= low && value <= high)
}

/** The manifest of a form over a frozen dataset. Targets go in as they are registered. */
export function manifestOf(form: Form, targets: readonly Target[], dataset: Pick<Dataset, 'path' | 'sha256' | 'seed' | 'profile'>): Record<string, unknown> {
  const sampling = Object.fromEntries(Object.entries(form.sampling).filter(([, value]) => value !== null))
  const limits = Object.fromEntries(Object.entries(form.limits).filter(([, value]) => value !== null))
  const context = {
    ...(form.sessionId.trim() ? { session_id: form.sessionId.trim() } : {}),
    ...(form.conversationId.trim() ? { conversation_id: form.conversationId.trim() } : {}),
    ...(form.previewSeed === null ? {} : { sampling_seed: form.previewSeed }),
  }
  return {
    version: 'sr-bench-1.0',
    name: form.name.trim(),
    mode: form.mode,
    profile: dataset.profile,
    seed: dataset.seed,
    cost_policy: form.costPolicy,
    dataset: { path: dataset.path, sha256: dataset.sha256 },
    targets: targets.filter((target) => form.targets.includes(target.id)),
    limits,
    sampling,
    ...partInManifest(form.experiment),
    ...(form.mode === 'preview' && Object.keys(context).length > 0 ? { preview_context: context } : {}),
  }
}

/** What names the form's content: a review holds for one fingerprint. */
export function fingerprint(form: Form): string {
  return JSON.stringify(form)
}

/** Cases of a profile over the chosen benchmarks. */
export function countIn(catalog: Catalog, benchmark: string, profile: Profile): number {
  const found = catalog.benchmarks.find((item) => item.id === benchmark)
  return found ? found[`${profile}_count`] : 0
}
