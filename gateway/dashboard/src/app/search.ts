// Search parameters are the pages' state. These readers take what is valid and drop the rest: an unknown value never breaks
// a link. Absent and default values stay out of the address.

type Raw = Record<string, unknown>

/** A text of at most `most` characters. */
export function text(raw: Raw, name: string, most = 200): string | undefined {
  const value = raw[name]
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' && value.length <= most ? value : undefined
}

/** One of `allowed`. */
export function oneOf<const T extends string>(raw: Raw, name: string, allowed: readonly T[]): T | undefined {
  return allowed.find((item) => item === raw[name])
}

/** A whole number, at least `least`. */
export function whole(raw: Raw, name: string, least = 0): number | undefined {
  const value = typeof raw[name] === 'string' ? Number(raw[name]) : raw[name]
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least ? value : undefined
}

/** A yes or no. */
export function flag(raw: Raw, name: string): boolean | undefined {
  return raw[name] === true || raw[name] === 'true' ? true : raw[name] === false || raw[name] === 'false' ? false : undefined
}

/** A list of texts; one text is a list of one. */
export function texts(raw: Raw, name: string, most = 100): string[] | undefined {
  const value = raw[name]
  const items = (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === 'string' && item !== '')
  return items.length > 0 ? items.slice(0, most) : undefined
}

/** `found` without members that are not there, so that addresses stay short. */
export function compact<T extends object>(found: T): T {
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)) as T
}
