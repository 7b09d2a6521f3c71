// What a plan will probably cost and take, learned from the last run of each of its targets. An estimate, marked as one.
import { get } from '../../api/client'
import type { Metrics } from '../../api/types'

export interface Estimate {
  /** US dollars; `null` when any target has no run with known cost. */
  costUsd: number | null
  /** Seconds, by median and by 95th percentile; `null` when any target has no run with known times. */
  earliestS: number | null
  latestS: number | null
}

/** The last completed live run's figures of each target; `undefined` for one that has none. */
export async function lastFigures(targetIds: readonly string[], signal: AbortSignal): Promise<(Metrics | undefined)[]> {
  return Promise.all(
    targetIds.map(async (id) => {
      const { runs } = await get('/runs', { query: { q: id, status: 'completed', mode: 'live', limit: 10 }, signal })
      const run = runs.find((item) => item.manifest.targets.some((target) => target.id === id))
      if (!run) return undefined
      const report = await get('/runs/{run_id}/report', { path: { run_id: run.id }, signal, deadlineMs: 60_000 })
      return report.summary?.targets.find((row) => row.id === id)
    }),
  )
}

/** Scales what was seen to `cases` questions at `concurrency` calls at once, within the run's deadline. */
export function estimateOf(figures: readonly (Metrics | undefined)[], cases: number, concurrency: number, deadlineS: number): Estimate {
  const add = (part: (row: Metrics) => number | null): number | null => {
    let sum = 0
    for (const row of figures) {
      const value = row && row.request_count > 0 ? part(row) : null
      if (value === null) return null
      sum += value * cases
    }
    return sum
  }
  const within = (seconds: number | null) => (seconds === null ? null : Math.min(deadlineS, seconds / Math.max(1, concurrency)))
  return {
    costUsd: add((row) => (row.cost_usd === null ? null : row.cost_usd / row.total)),
    earliestS: within(add((row) => row.latency_p50_s)),
    latestS: within(add((row) => row.latency_p95_s)),
  }
}
