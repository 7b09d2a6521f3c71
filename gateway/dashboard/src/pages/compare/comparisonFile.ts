// A comparison as a file: CSV with a row a comparison, or the service's answer as it came.
import { stringifyExact } from '../../api/exactJson'
import type { Comparison, ComparisonReport } from './queries'

const COLUMNS: [string, (report: ComparisonReport, row: Comparison) => unknown][] = [
  ['baseline_run_id', (report) => report.baseline_run_id],
  ['baseline_target_id', (_report, row) => row.baseline_target_id],
  ['candidate_run_id', (_report, row) => row.candidate_run_id],
  ['candidate_target_id', (_report, row) => row.candidate_target_id],
  ['paired_cases', (_report, row) => row.paired_cases],
  ['verdict', (_report, row) => row.verdict],
  ['quality_delta', (_report, row) => row.quality_delta],
  ['quality_delta_low', (_report, row) => row.quality_delta_ci95[0]],
  ['quality_delta_high', (_report, row) => row.quality_delta_ci95[1]],
  ['quality_delta_method', (_report, row) => row.quality_delta_ci95_method],
  ['wins', (_report, row) => row.wins],
  ['losses', (_report, row) => row.losses],
  ['ties', (_report, row) => row.ties],
  ['mcnemar_p', (_report, row) => row.mcnemar_p],
  ['mcnemar_p_holm', (_report, row) => row.mcnemar_p_holm],
  ['baseline_subject_cost_usd', (_report, row) => row.baseline_subject_cost_usd],
  ['candidate_subject_cost_usd', (_report, row) => row.candidate_subject_cost_usd],
  ['subject_cost_saving_percent', (_report, row) => row.subject_cost_saving_percent],
  ['baseline_evaluation_cost_usd', (_report, row) => row.baseline_evaluation_cost_usd],
  ['candidate_evaluation_cost_usd', (_report, row) => row.candidate_evaluation_cost_usd],
  ['baseline_total_cost_usd', (_report, row) => row.baseline_total_cost_usd],
  ['candidate_total_cost_usd', (_report, row) => row.candidate_total_cost_usd],
  ['total_cost_saving_percent', (_report, row) => row.total_cost_saving_percent],
  ['total_cost_comparison_reason', (_report, row) => row.total_cost_comparison_reason],
  ['cache_neutral_cost_saving_percent', (_report, row) => row.cache_neutral_cost_saving_percent],
]

/** All comparisons, a row each. What is unknown stays empty. */
export function comparisonCsv(report: ComparisonReport): string {
  const head = COLUMNS.map(([name]) => name)
  const rows = report.comparisons.map((row) => COLUMNS.map(([, value]) => cell(value(report, row))))
  return `\ufeff${[head, ...rows].map((line) => line.join(',')).join('\r\n')}\r\n`
}

export function comparisonJson(report: ComparisonReport): string {
  return `${stringifyExact(report, 1)}\n`
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  const text = typeof value === 'string' ? value : stringifyExact(value)
  // A cell that begins so is taken for a formula by spreadsheets.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
