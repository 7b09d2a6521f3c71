// Prices as they are typed, and as they are asked for. US dollars per million tokens.
import type { Target } from '../../../api/types'

export const KINDS = ['input', 'cached_input', 'cache_write', 'output'] as const
export type Kind = (typeof KINDS)[number]
/** What stands in the fields, by model. */
export type Typed = Record<string, Record<Kind, string>>
export type Price = NonNullable<Target['prices']>[string]

const MOST = 1_000_000
const DECIMALS = 6

/** The prices that the plan froze, by model; of a model that several targets price, the first. */
export function frozenPrices(targets: readonly Target[]): Record<string, Price> {
  const found: Record<string, Price> = {}
  for (const target of targets) {
    for (const [model, price] of Object.entries(target.prices ?? {})) found[model] ??= price
  }
  return found
}

export function typedOf(prices: Record<string, Price>): Typed {
  return Object.fromEntries(Object.entries(prices).map(([model, price]) => [model, Object.fromEntries(KINDS.map((kind) => [kind, plain(price[kind])])) as Record<Kind, string>]))
}

/** Whether a text is a price that the service takes. */
export function isPrice(text: string): boolean {
  return /^\d{1,7}(\.\d+)?$/.test(text.trim()) && Number(text) <= MOST && (text.trim().split('.')[1] ?? '').length <= DECIMALS
}

/** The models whose prices were changed, as a target writes them; `null` while a text is no price. */
export function changedPrices(typed: Typed, frozen: Record<string, Price>): Record<string, Price> | null {
  const changed: Record<string, Price> = {}
  for (const [model, texts] of Object.entries(typed)) {
    if (!KINDS.every((kind) => isPrice(texts[kind]))) return null
    const before = frozen[model]
    if (!before || KINDS.every((kind) => Number(texts[kind]) === before[kind])) continue
    // Writes to a cache that lives an hour have no field here and keep their price.
    changed[model] = { ...before, ...(Object.fromEntries(KINDS.map((kind) => [kind, Number(texts[kind])])) as Record<Kind, number>) }
  }
  return changed
}

/** A number without an exponent. */
function plain(value: number): string {
  return value.toFixed(DECIMALS).replace(/\.?0+$/, '')
}

/** The share saved by costing `cost` in place of `reference`; `null` when either is unknown, or nothing was paid. */
export function savedShare(cost: number | null, reference: number | null): number | null {
  return cost === null || reference === null || reference <= 0 ? null : 1 - cost / reference
}
