import { useNavigate } from '@tanstack/react-router'
import { Suspense } from 'react'
import type { Metrics } from '../../api/types'
import { lazily } from '../../components/lazily'
import { Loading } from '../../components/Notices'
import { useTexts } from '../../i18n/messages'
import { Alert } from '@mantine/core'
import { Exports } from './Exports'
import { FigureTable } from './FigureTable'
import { messages } from './messages'
import { keyOf, nameOf, useRuns } from './names'
import { Pairs } from './Pairs'
import { PlanDiff } from './PlanDiff'
import type { Comparison, ComparisonReport } from './queries'
import { Routers } from './Routers'
import type { CompareSearch } from './search'
import { Verdicts } from './Verdicts'

const Charts = lazily(() => import('./Charts').then((module) => module.Charts))

/** Everything that follows from a comparison, most important first. */
export function Results({ report, search }: { report: ComparisonReport; search: CompareSearch }) {
  const navigate = useNavigate({ from: '/compare' })
  const runs = useRuns([report.baseline_run_id, ...report.candidates.map((run) => run.run_id)])
  const chosen = chosenOf(report, search)
  const change = (part: Partial<CompareSearch>) => void navigate({ search: (old) => ({ ...old, ...part }), replace: true, resetScroll: false })
  const choose = (row: Comparison) => change({ of: row.candidate_run_id, target: row.candidate_target_id, case: undefined, at: undefined, outcome: undefined })
  const show = (row: Comparison) => {
    choose(row)
    requestAnimationFrame(() => document.getElementById('questions')?.scrollIntoView({ block: 'start' }))
  }
  return (
    <>
      <Failures report={report} />
      <Verdicts report={report} runs={runs} onQuestions={show} />
      <Suspense fallback={<Loading />}>
        <Charts report={report} runs={runs} search={search} onChange={change} onPick={show} />
      </Suspense>
      <FigureTable report={report} runs={runs} />
      {chosen && (
        <>
          <Pairs key={keyOf(chosen)} report={report} row={chosen} runs={runs} search={search} onChoose={choose} />
          <div className="columns">
            <Routers sayings={report.sayings} row={chosen} name={nameOf(runs, report, chosen)} />
            <PlanDiff report={report} row={chosen} runs={runs} against={search.against} onChange={change} />
          </div>
        </>
      )}
      <Exports report={report} runs={runs} />
    </>
  )
}

function chosenOf(report: ComparisonReport, search: CompareSearch): Comparison | undefined {
  const fits = (row: Comparison) => row.candidate_run_id === search.of && (search.target === undefined || row.candidate_target_id === search.target)
  return report.comparisons.find(fits) ?? report.comparisons[0]
}

/** Failures count as wrong, and that must be said before any figure. */
function Failures({ report }: { report: ComparisonReport }) {
  const t = useTexts(messages)
  const failed = (rows: Metrics[]) => rows.filter((row) => row.failed > 0).map((row) => `${row.id} ${row.failed} / ${row.total}`)
  const list = [...failed(report.baseline_targets), ...failed(report.candidate_targets)]
  if (list.length === 0) return null
  return (
    <Alert color="orange" variant="light" role="note" className="notice">
      {t('failures', { list: list.join(', ') })}
    </Alert>
  )
}
