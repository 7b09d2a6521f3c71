// What runs and targets are called on the page.
import { visible } from '../../format/visible'
import { useQueries } from '@tanstack/react-query'
import { runQuery } from '../../api/queries'
import type { Run } from '../../api/types'
import type { Comparison, ComparisonReport } from './queries'

/** The runs of a comparison by id, as far as they are read. */
export function useRuns(ids: readonly string[]): Map<string, Run> {
  const read = useQueries({ queries: ids.map((id) => runQuery(id)) })
  return new Map(read.flatMap((query) => (query.data ? [[query.data.id, query.data] as const] : [])))
}

export function runName(runs: Map<string, Run>, id: string): string {
  return visible(runs.get(id)?.manifest.name || id)
}

/** The candidate's name: its run's, and its target's where the run has several. */
export function nameOf(runs: Map<string, Run>, report: ComparisonReport, row: Comparison): string {
  const name = runName(runs, row.candidate_run_id)
  const several = (report.candidates.find((run) => run.run_id === row.candidate_run_id)?.target_ids.length ?? 1) > 1
  return several ? `${name} · ${row.candidate_target_id}` : name
}

export function keyOf(row: Comparison): string {
  return `${row.candidate_run_id}/${row.candidate_target_id}`
}
