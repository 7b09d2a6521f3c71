// What a plan will probably cost and take, learned from the last runs of each of its targets. An estimate, marked as one.
import { get } from '../../api/client'
import type { Metrics } from '../../api/types'

export interface Estimate {
  /** US dollars, judges and simulators included; `null` when any target has no run of every benchmark with known cost. */
  costUsd: number | null
  /** Seconds, by median and by 95th percentile; `null` when any target has no run with known times. */
  earliestS: number | null
  latestS: number | null
}
/** What was seen of one target: its figures by benchmark. */
export type Seen = ReadonlyMap<string, Metrics>

// Reports are read one after the other until all benchmarks are found; more say little that is new.
const MAX_REPORTS = 3

/** The latest completed live figures of each target for each of the benchmarks. */
export async function lastFigures(targetIds: readonly string[], benchmarks: readonly string[]): Promise<Seen[]> {
  return Promise.all(targetIds.map((id) => seen(id, benchmarks)))
}

async function seen(targetId: string, benchmarks: readonly string[]): Promise<Seen> {
  const found = new Map<string, Metrics>()
  const { runs } = await get('/runs', { query: { q: targetId, status: 'completed', mode: 'live', limit: 10 } })
  const own = runs.filter((item) => item.manifest.targets.some((target) => target.id === targetId))
  for (const run of own.slice(0, MAX_REPORTS)) {
    const report = await get('/runs/{run_id}/report', { path: { run_id: run.id }, deadlineMs: 60_000 })
    for (const row of report.benchmarks) {
      if (row.target_id === targetId && row.benchmark && !found.has(row.benchmark)) found.set(row.benchmark, row)
    }
    if (benchmarks.every((name) => found.has(name))) break
  }
  return found
}

/** Scales what was seen to `cases` questions of each benchmark at `concurrency` cells at once, within the run's deadline. */
export function estimateOf(figures: readonly Seen[], cases: Readonly<Record<string, number>>, concurrency: number, deadlineS: number): Estimate {
  const add = (part: (row: Metrics) => number | null): number | null => {
    let sum = 0
    for (const seenOfTarget of figures) {
      for (const [benchmark, questions] of Object.entries(cases)) {
        const row = seenOfTarget.get(benchmark)
        const value = row && row.request_count > 0 ? part(row) : null
        if (value === null) return null
        sum += value * questions
      }
    }
    return figures.length > 0 ? sum : null
  }
  const within = (seconds: number | null) => (seconds === null ? null : Math.min(deadlineS, seconds / Math.max(1, concurrency)))
  const callsOf = (row: Metrics) => Math.max(1, row.request_count / row.total)
  return {
    costUsd: add((row) => (row.total_spend_usd === null ? null : row.total_spend_usd / row.total)),
    earliestS: within(add((row) => (row.latency_p50_s === null ? null : row.latency_p50_s * callsOf(row)))),
    latestS: within(add((row) => (row.latency_p95_s === null ? null : row.latency_p95_s * callsOf(row)))),
  }
}
