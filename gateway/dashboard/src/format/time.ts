// Times are seconds since 1970, durations seconds, as in the API.
import { decimal, type Maybe } from './numbers'

let locale = 'en'

/** Sets the language of dates. */
export function setTimeLocale(name: string): void {
  locale = name
}

/** A moment in the reader's time zone. */
export function moment(seconds: Maybe<number>): string | null {
  if (seconds === null || seconds === undefined || seconds <= 0) return null
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(seconds * 1000)
}

/** How long ago a moment was, in the largest fitting unit. */
export function ago(seconds: Maybe<number>, nowMs: number): string | null {
  if (seconds === null || seconds === undefined || seconds <= 0) return null
  const past = Math.max(0, Math.round(nowMs / 1000 - seconds))
  const words = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  if (past < 60) return words.format(-past, 'second')
  if (past < 3600) return words.format(-Math.floor(past / 60), 'minute')
  if (past < 86_400) return words.format(-Math.floor(past / 3600), 'hour')
  return words.format(-Math.floor(past / 86_400), 'day')
}

/** A duration: milliseconds below a second, decimals below a minute, `1h 2m 3s` above. */
export function duration(seconds: Maybe<number>): string | null {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds) || seconds < 0) return null
  if (seconds < 1) return `${decimal(seconds * 1000, seconds < 0.01 ? 1 : 0)} ms`
  if (seconds < 60) return `${decimal(seconds, 2)} s`
  const whole = Math.round(seconds)
  const parts = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60]
  const [h, m, s] = parts as [number, number, number]
  if (h > 0) return `${h}h ${m}m ${s}s`
  return `${m}m ${s}s`
}
