// Named filters and orders of a list.

export interface View {
  name: string
  search: Record<string, unknown>
}

export const MOST_VIEWS = 50
export const MOST_NAME_CHARS = 60

/** The views in anything. */
export function viewsIn(raw: unknown): View[] {
  if (!Array.isArray(raw)) return []
  const found = raw.filter((item): item is View => isObject(item) && typeof item.name === 'string' && item.name !== '' && isObject(item.search))
  return found.slice(0, MOST_VIEWS)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The views with `added`, which takes the place of one of the same name. */
export function withView(views: readonly View[], added: View): View[] {
  return [...views.filter((view) => view.name !== added.name), added]
}

/** Whether two searches ask for the same, in whatever order. */
export function same(one: object, other: object): boolean {
  const sorted = (search: object) => JSON.stringify(Object.entries(search).filter(([, value]) => value !== undefined).sort())
  return sorted(one) === sorted(other)
}
