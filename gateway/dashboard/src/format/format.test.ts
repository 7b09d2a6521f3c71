import { describe, expect, it } from 'vitest'
import { quoted } from './command'
import { bytes, count, percent, points, usd } from './numbers'
import { paceOf, withSample } from './pace'
import { duration } from './time'

describe('figures', () => {
  it('are null when they are unknown, never 0', () => {
    for (const show of [count, percent, usd, points, duration, bytes]) {
      expect(show(null)).toBeNull()
      expect(show(undefined)).toBeNull()
      expect(show(Number.NaN)).toBeNull()
    }
  })
  it('show every digit of a count', () => {
    expect(count(9007199254740993n)).toBe('9,007,199,254,740,993')
    expect(count(0)).toBe('0')
  })
  it('show small money with three digits and large money with cents', () => {
    expect(usd(0)).toBe('$0.00')
    expect(usd(0.00006101)).toBe('$0.000061')
    expect(usd(0.56341916)).toBe('$0.563')
    expect(usd(1234.5)).toBe('$1,234.50')
  })
  it('show changes with their sign', () => {
    expect(points(0.0123)).toBe('+1.2 pp')
    expect(points(-0.0123)).toBe('−1.2 pp')
    expect(points(0)).toBe('0.0 pp')
  })
  it('show durations in the unit that fits', () => {
    expect(duration(0.1234)).toBe('123 ms')
    expect(duration(12.345)).toBe('12.35 s')
    expect(duration(3723)).toBe('1h 2m 3s')
  })
})

describe('the pace of a run', () => {
  it('is unknown until something was seen for two seconds', () => {
    expect(paceOf([], 10)).toBeNull()
    expect(paceOf([{ at: 0, done: 0 }], 10)).toBeNull()
    expect(paceOf([{ at: 0, done: 0 }, { at: 1, done: 5 }], 10)).toBeNull()
  })
  it('gives a range from its slower and its faster half', () => {
    const seen = [
      { at: 0, done: 0 },
      { at: 5, done: 5 },
      { at: 10, done: 20 },
    ]
    const pace = paceOf(seen, 40)
    expect(pace?.rate).toBe(2)
    expect(pace?.earliest).toBeCloseTo(20 / 3)
    expect(pace?.latest).toBe(20)
  })
  it('forgets what is old, and everything when a run goes backwards', () => {
    expect(withSample([{ at: 0, done: 1 }], { at: 200, done: 2 })).toEqual([{ at: 200, done: 2 }])
    expect(withSample([{ at: 0, done: 9 }], { at: 1, done: 2 })).toEqual([{ at: 1, done: 2 }])
  })
})

describe('words of a shell', () => {
  it('are quoted where they must be', () => {
    expect(quoted('mmlu-pro/1')).toBe('mmlu-pro/1')
    expect(quoted("it's; rm -rf $HOME")).toBe("'it'\\''s; rm -rf $HOME'")
    expect(quoted('')).toBe("''")
  })
})
