import { describe, expect, test } from 'vitest'
import { evenTicks, linear, logarithmic, padded, ratioTicks } from './scale'

describe('scales', () => {
  test('a linear axis maps its ends to the ends of the range', () => {
    const scale = linear([0.5, 0.9], [300, 0])
    expect([scale.at(0.5), scale.at(0.9), scale.at(0.7)].map(Math.round)).toEqual([300, 0, 150])
  })

  test('a logarithmic axis puts equal ratios equally far apart', () => {
    const scale = logarithmic([0.01, 1], [0, 200])
    expect(scale.at(0.1)).toBeCloseTo(100)
    expect(scale.at(1) - scale.at(0.1)).toBeCloseTo(scale.at(0.1) - scale.at(0.01))
  })

  test('ticks are round, ascending and inside the bounds', () => {
    expect(evenTicks(0.52, 0.87, 4)).toEqual([0.6, 0.7, 0.8])
    expect(evenTicks(-12.5, 31, 5)).toEqual([-10, 0, 10, 20, 30])
    expect(ratioTicks(0.002, 0.3, 5)).toEqual([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
    expect(ratioTicks(0.002, 3, 5)).toEqual([0.003, 0.01, 0.03, 0.1, 0.3, 1, 3])
    expect(ratioTicks(0.021, 0.043, 4).every((value) => value > 0.02 && value < 0.044)).toBe(true)
    expect(ratioTicks(1e-6, 1e6, 5)).toEqual([1e-6, 1e-4, 0.01, 1, 100, 1e4, 1e6])
  })

  test('equal values get room around them', () => {
    const [low, high] = padded(0.8, 0.8)
    expect(low).toBeLessThan(0.8)
    expect(high).toBeGreaterThan(0.8)
    expect(padded(0, 0)[1]).toBeGreaterThan(0)
  })
})
