import { expect, it } from 'vitest'
import type { Metrics } from '../../api/types'
import { estimateOf, type Seen } from './estimate'

const row = (more: Partial<Metrics>): Metrics =>
  ({ total: 10, request_count: 10, total_spend_usd: 2, latency_p50_s: 1, latency_p95_s: 3, ...more }) as Metrics
const seen = (rows: Record<string, Partial<Metrics>>): Seen => new Map(Object.entries(rows).map(([name, more]) => [name, row(more)]))

it('scales each benchmark by its own figures, judges and steps included', () => {
  const figures = [seen({ hle: { total_spend_usd: 5 }, scicode: { request_count: 60, total_spend_usd: 20 } })]
  const made = estimateOf(figures, { hle: 4, scicode: 2 }, 2, 1000)
  expect(made.costUsd).toBeCloseTo(4 * 0.5 + 2 * 2)
  expect(made.earliestS).toBeCloseTo((4 * 1 + 2 * 6) / 2)
  expect(made.latestS).toBeCloseTo((4 * 3 + 2 * 18) / 2)
})

it('knows nothing of a benchmark that a target never ran, of an unknown spend, or of no target', () => {
  expect(estimateOf([seen({ hle: {} }), seen({})], { hle: 4 }, 1, 1000).costUsd).toBeNull()
  expect(estimateOf([seen({ hle: { total_spend_usd: null } })], { hle: 4 }, 1, 1000)).toMatchObject({ costUsd: null, earliestS: 4 })
  expect(estimateOf([], { hle: 4 }, 1, 1000)).toEqual({ costUsd: null, earliestS: null, latestS: null })
})
