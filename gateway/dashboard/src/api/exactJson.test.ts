import { describe, expect, it } from 'vitest'
import { exactSum, parseExact, stringifyExact } from './exactJson'

describe('exact JSON', () => {
  it('keeps whole numbers beyond a double', () => {
    expect(parseExact('{"total":9007199254740993,"small":12}')).toEqual({ total: 9007199254740993n, small: 12 })
  })
  it('writes back what it read', () => {
    const text = '{"a":9007199254740993,"b":[-18446744073709551616,1.5,"9007199254740993"],"c":1e300}'
    expect(stringifyExact(parseExact(text))).toBe(text.replace('1e300', '1e+300'))
  })
  it('takes no text for a number, whatever it says', () => {
    const hostile = { text: '9007199254740993', escaped: 'a "9007199254740993" b', real: 0.12345678901234567 }
    expect(parseExact(JSON.stringify(hostile))).toEqual(hostile)
  })
  it('sums exactly, and not at all with an unknown part', () => {
    expect(exactSum([12, 3])).toBe(15)
    expect(exactSum([9007199254740993n, 0])).toBe(9007199254740993n)
    expect(exactSum([9007199254740991, 1])).toBe(9007199254740992n)
    expect(exactSum([1, null])).toBeNull()
    expect(exactSum([1, undefined])).toBeNull()
  })
})
