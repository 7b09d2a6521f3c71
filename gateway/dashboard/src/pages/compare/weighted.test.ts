import { expect, test } from 'vitest'
import { weightedInterval } from './weighted'

test('one benchmark keeps its own interval', () => {
  expect(weightedInterval([{ weight: 3, share: 0.6, low: 0.5, high: 0.7 }])!.map((end) => Number(end.toFixed(9)))).toEqual([0.5, 0.7])
})

test('two equal benchmarks make an interval narrower by the root of two', () => {
  const part = { weight: 1, share: 0.6, low: 0.5, high: 0.7 }
  const [low, high] = weightedInterval([part, part])!
  expect(0.6 - low).toBeCloseTo(0.1 / Math.SQRT2)
  expect(high - 0.6).toBeCloseTo(0.1 / Math.SQRT2)
})

test('a benchmark without weight changes nothing, and no weight at all gives nothing', () => {
  const part = { weight: 1, share: 0.6, low: 0.5, high: 0.7 }
  expect(weightedInterval([part, { weight: 0, share: 0, low: 0, high: 1 }])).toEqual(weightedInterval([part]))
  expect(weightedInterval([{ ...part, weight: 0 }])).toBeNull()
})
