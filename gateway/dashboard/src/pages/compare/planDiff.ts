// What differs between two frozen manifests, place by place. Equal places are left out.
import { stringifyExact } from '../../api/exactJson'

export const GROUPS = ['data', 'sampling', 'limits', 'prices', 'targets', 'recipe', 'grading', 'other'] as const
type Group = (typeof GROUPS)[number]

export interface PlanChange {
  group: Group
  /** Where in the manifest; members of lists go by their ids. */
  path: string
  /** The values as texts; `null` where there is none. */
  before: string | null
  after: string | null
}

type Json = unknown
const GROUP_OF: Record<string, Group> = {
  dataset: 'data',
  case_sha256: 'data',
  profile: 'data',
  seed: 'data',
  sampling: 'sampling',
  output_policy: 'sampling',
  limits: 'limits',
  prices: 'prices',
  cost_policy: 'prices',
  targets: 'targets',
  recipes: 'recipe',
  auxiliary_targets: 'grading',
  adapter_versions: 'grading',
  benchmark_weights: 'grading',
  benchmark_options: 'grading',
}

/** Every change from `before` to `after`, by group and path. */
export function planChanges(before: object, after: object): PlanChange[] {
  const found: PlanChange[] = []
  walk([], before, after, found)
  return found.sort((one, other) => GROUPS.indexOf(one.group) - GROUPS.indexOf(other.group) || one.path.localeCompare(other.path))
}

/** How many places are equal: what is folded away. */
export function equalPlaces(before: object, after: object): number {
  return countEqual(before, after)
}

function walk(path: string[], before: Json, after: Json, found: PlanChange[]): void {
  if (same(before, after)) return
  const [one, other] = [membersOf(before), membersOf(after)]
  if (one === null || other === null) {
    // A whole that is only on one side is one change, not one for each of its members.
    found.push({ group: groupOf(path), path: path.join('.'), before: shown(before), after: shown(after) })
    return
  }
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    // The digest of the whole differs whenever anything does: it is shown apart.
    if (path.length === 0 && name === 'plan_sha256') continue
    walk([...path, name], one[name], other[name], found)
  }
}

/** The members of an object or of a list whose items all have an id, or all a name; `null` for everything else. */
function membersOf(value: Json): Record<string, Json> | null {
  if (!Array.isArray(value)) return isObject(value) ? value : null
  const key = ['id', 'name'].find((name) => value.every((item) => isObject(item) && typeof item[name] === 'string'))
  if (key === undefined) return null
  const members = Object.fromEntries(value.map((item: Record<string, Json>) => [String(item[key]), item]))
  // Two of one name cannot be told apart by it.
  return Object.keys(members).length === value.length ? members : null
}

function isObject(value: Json): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function groupOf(path: readonly string[]): Group {
  if (path.includes('prices')) return 'prices'
  return GROUP_OF[path[0] ?? ''] ?? 'other'
}

function same(one: Json, other: Json): boolean {
  if (one === other) return true
  return stable(one) === stable(other)
}

function stable(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  // A member that is null and one that is not there say the same.
  if (!isObject(value)) return value === undefined ? 'null' : stringifyExact(value)
  const names = Object.keys(value).filter((name) => value[name] !== null && value[name] !== undefined).sort()
  return `{${names.map((name) => `${name}:${stable(value[name])}`).join(',')}}`
}

function shown(value: Json): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'string' ? value : stringifyExact(value, 1)
}

function countEqual(before: Json, after: Json): number {
  const [one, other] = [membersOf(before), membersOf(after)]
  if (one === null || other === null) return same(before, after) ? 1 : 0
  return Object.keys(one).reduce((sum, name) => sum + (name in other ? countEqual(one[name], other[name]) : 0), 0)
}
