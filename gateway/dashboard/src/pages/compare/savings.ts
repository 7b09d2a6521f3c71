import { decimal, signed, type Maybe } from '../../format/numbers'

/** A saving, given in percent, with its sign; negative when the candidate costs more. */
export function savedPercent(value: Maybe<number>): string | null {
  return signed(value, (size) => `${decimal(size, size < 10 ? 1 : 0)} %`)
}

/** Both ends of an interval; `null` without one. */
export function range(ends: readonly number[] | null | undefined, show: (value: number) => string | null): string | null {
  const [low, high] = ends ?? []
  if (low === undefined || high === undefined) return null
  return `${show(low) ?? ''} … ${show(high) ?? ''}`
}

/** A p-value; tiny ones by their bound, because their digits say nothing. */
export function pValue(value: number): string {
  return value < 0.0001 ? `< ${decimal(0.0001, 4) ?? ''}` : (decimal(value, value < 0.01 ? 4 : 3) ?? '')
}
