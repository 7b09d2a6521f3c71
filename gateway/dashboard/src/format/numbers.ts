// Numbers as people read them. Unknown is never a number: every formatter gives `null` for it, and `Value` shows the dash.
import type { Exact } from '../api/exactJson'

export type Maybe<T> = T | null | undefined

export const DASH = '—'

let locale = 'en'

/** Sets the language of digits and separators. */
export function setNumberLocale(name: string): void {
  locale = name
}

function known(value: Maybe<Exact>): value is Exact {
  return value !== null && value !== undefined && (typeof value === 'bigint' || Number.isFinite(value))
}

/** A count: every digit, grouped. */
export function count(value: Maybe<Exact>): string | null {
  return known(value) ? new Intl.NumberFormat(locale, { maximumFractionDigits: 0 }).format(value) : null
}

/** A share in [0, 1] as a percentage. */
export function percent(value: Maybe<number>, digits = 1): string | null {
  if (!known(value)) return null
  return new Intl.NumberFormat(locale, { style: 'percent', minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value)
}

/** US dollars: cents where they suffice, else as many digits as it takes to show three of them. */
export function usd(value: Maybe<number>): string | null {
  if (!known(value)) return null
  const size = Math.abs(value)
  if (size === 0) return money(0, 2)
  if (size >= 100) return money(value, 2)
  if (size >= 1) return money(value, 3)
  if (size < 1e-12) return money(value, 2)
  return money(value, Math.min(12, 2 - Math.floor(Math.log10(size))))
}

function money(value: number, digits: number): string {
  const format = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: 2, maximumFractionDigits: digits } as const
  return new Intl.NumberFormat(locale, format).format(value)
}

/** A change with its sign: `+`, a true minus, or a bare zero. */
export function signed(value: Maybe<number>, show: (size: number) => string | null): string | null {
  if (!known(value)) return null
  if (value === 0) return show(0)
  return (value > 0 ? '+' : '−') + (show(Math.abs(value)) ?? '')
}

/** A difference of shares in percentage points. */
export function points(value: Maybe<number>, digits = 1): string | null {
  return signed(value, (size) => `${new Intl.NumberFormat(locale, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(size * 100)} pp`)
}

/** A plain number with at most `digits` decimals. */
export function decimal(value: Maybe<number>, digits = 2): string | null {
  return known(value) ? new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value) : null
}

/** Bytes in units of 1024. */
export function bytes(value: Maybe<number>): string | null {
  if (!known(value)) return null
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let size: number = value
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit += 1
  }
  return `${decimal(size, unit === 0 ? 0 : 1)} ${units[unit]}`
}
