import { expect, test } from 'vitest'
import { comparisonCsv } from './comparisonFile'
import type { Comparison, ComparisonReport } from './queries'

function report(row: Partial<Comparison>): ComparisonReport {
  return { baseline_run_id: 'base', comparisons: [{ quality_delta_ci95: [-0.1, 0.2], ...row }] } as unknown as ComparisonReport
}

test('there is a row for each comparison, and unknown figures stay empty', () => {
  const [head, row, end] = comparisonCsv(report({ candidate_run_id: 'cand', total_cost_saving_percent: null, wins: 0 })).split('\r\n')
  const cells = Object.fromEntries(head!.replace('\ufeff', '').split(',').map((name, index) => [name, row!.split(',')[index]]))
  expect(cells).toMatchObject({ baseline_run_id: 'base', candidate_run_id: 'cand', quality_delta_low: '-0.1', total_cost_saving_percent: '', wins: '0' })
  expect(end).toBe('')
})

test('a name that looks like a formula or holds separators stays a text', () => {
  const text = comparisonCsv(report({ candidate_target_id: '=cmd|"x",y' }))
  expect(text).toContain(`"'=cmd|""x"",y"`)
})
