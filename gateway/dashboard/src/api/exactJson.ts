import { randomId } from './random'

// JSON with whole numbers of any size. A double holds integers up to 2^53 - 1 only; larger ones become `bigint`, so that
// what is shown, summed and sent back is what the service said.

/** A whole number as it came: a `bigint` where a double could not hold it. */
export type Exact = number | bigint

const LONG_NUMBER = /\d{16}/
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const WHOLE = /^-?\d+$/

/** Parses `text`. Throws `SyntaxError` when it is not JSON. */
export function parseExact(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text)
  // A fresh mark for each text: no string in it can be taken for a number of ours.
  const mark = `${randomId()}:`
  const marked = text.replace(TOKENS, (token) =>
    WHOLE.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
  )
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  )
}

/** `value` as JSON text; `bigint`s are written as the numbers they are. */
export function stringifyExact(value: unknown, indent?: number): string {
  const mark = `${randomId()}:`
  let big = false
  const text = JSON.stringify(
    value,
    (_key, item: unknown) => {
      if (typeof item !== 'bigint') return item
      big = true
      return mark + item.toString()
    },
    indent,
  )
  return big ? text.replace(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1') : text
}

/** The exact sum; `null` when any part is unknown, because the sum then is unknown, too. */
export function exactSum(parts: readonly (Exact | null | undefined)[]): Exact | null {
  let sum = 0n
  for (const part of parts) {
    if (part === null || part === undefined) return null
    if (typeof part === 'number' && !Number.isSafeInteger(part)) return null
    sum += BigInt(part)
  }
  const small = Number(sum)
  return Number.isSafeInteger(small) ? small : sum
}
