import { SegmentedControl } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { reportQuery } from '../../api/queries'
import type { Metrics, Report, Run } from '../../api/types'
import { Forest } from '../../charts/Forest'
import { Plane, type PlanePoint } from '../../charts/Plane'
import { Section } from '../../components/Page'
import { points as inPoints, usd } from '../../format/numbers'
import { useTexts } from '../../i18n/messages'
import { useSayings } from '../../i18n/sentences'
import { messages } from './messages'
import { keyOf, nameOf, runName } from './names'
import type { Comparison, ComparisonReport } from './queries'
import { savedPercent } from './savings'
import type { CompareSearch } from './search'
import { weightedInterval } from './weighted'

interface Props {
  report: ComparisonReport
  runs: Map<string, Run>
  search: CompareSearch
  onChange: (part: Partial<CompareSearch>) => void
  onPick: (row: Comparison) => void
}

/** The cost–quality plane, and, with several candidates, how quality and saving went from one to the next. */
export function Charts({ report, runs, search, onChange, onPick }: Props) {
  const t = useTexts(messages)
  const reports = useReports(runs)
  const basis = search.cost ?? 'total'
  const points = planePoints(report, runs, reports, basis, (known) => t('costUnknownWhy', { known }))
  const pick = (key: string) => {
    const row = report.comparisons.find((found) => keyOf(found) === key)
    if (row) onPick(row)
  }
  return (
    <>
      <Section
        title={t('plane')}
        note={t('planeNote')}
        actions={
          <>
            <SegmentedControl
              size="xs"
              aria-label={t('basis')}
              value={basis}
              onChange={(value) => onChange({ cost: value === 'total' ? undefined : (value as CompareSearch['cost']) })}
              data={[
                { value: 'total', label: t('total') },
                { value: 'subject', label: t('subject') },
                { value: 'neutral', label: t('neutral') },
              ]}
            />
            <SegmentedControl
              size="xs"
              aria-label={t('scale')}
              value={search.scale ?? 'log'}
              onChange={(value) => onChange({ scale: value === 'log' ? undefined : (value as CompareSearch['scale']) })}
              data={[
                { value: 'log', label: t('log') },
                { value: 'linear', label: t('linear') },
              ]}
            />
          </>
        }
      >
        <Plane points={points} logScale={(search.scale ?? 'log') === 'log'} onPick={pick} />
      </Section>
      {report.comparisons.length > 1 && <Iterations report={report} runs={runs} />}
    </>
  )
}

/** Reports are needed only where quality is weighted over several benchmarks: a comparison has no interval for that. */
function useReports(runs: Map<string, Run>): Map<string, Report> {
  const several = [...runs.values()].filter((run) => benchmarksOf(run).length > 1)
  const read = useQueries({ queries: several.map((run) => reportQuery(run.id, run.updated_at)) })
  return new Map(read.flatMap((query) => (query.data ? [[query.data.run_id, query.data] as const] : [])))
}

function benchmarksOf(run: Run): string[] {
  return Object.keys(run.manifest.adapter_versions ?? {})
}

const COST = { total: 'total_spend_usd', subject: 'cost_usd', neutral: 'cache_neutral_cost_usd' } as const

function planePoints(
  report: ComparisonReport,
  runs: Map<string, Run>,
  reports: Map<string, Report>,
  basis: keyof typeof COST,
  why: (known: string) => string,
): PlanePoint[] {
  const owners = report.candidates.flatMap((run) => run.target_ids.map(() => run.run_id))
  const baseline = report.baseline_targets.map((row) => ({ run: report.baseline_run_id, row, name: row.id, reference: row.id === report.baseline_selected_target_id }))
  const candidates = report.candidate_targets.map((row, index) => {
    const run = owners[index] ?? ''
    const several = (report.candidates.find((found) => found.run_id === run)?.target_ids.length ?? 1) > 1
    return { run, row, name: several ? `${runName(runs, run)} · ${row.id}` : runName(runs, run), reference: false }
  })
  return [...baseline, ...candidates].flatMap(({ run, row, name, reference }) => {
    const quality = row.macro_accuracy ?? row.accuracy
    if (quality === null) return []
    const cost = row[COST[basis]]
    const kind = runs.get(run)?.manifest.targets.find((target) => target.id === row.id)?.kind === 'mom' ? ('mom' as const) : ('single' as const)
    return [
      {
        key: `${run}/${row.id}`,
        name,
        kind,
        quality,
        qualityInterval: intervalOf(row, reports.get(run), runs.get(run)),
        cost,
        why: cost === null ? why(usd(row.known_cost_usd) ?? '') : undefined,
        reference,
      },
    ]
  })
}

function intervalOf(row: Metrics, report: Report | undefined, run: Run | undefined): [number, number] | null {
  const own = row.accuracy_ci95
  const weights = run?.manifest.benchmark_weights ?? {}
  if (run === undefined || benchmarksOf(run).length <= 1) return own && own.length === 2 ? [own[0]!, own[1]!] : null
  const parts = (report?.benchmarks ?? [])
    .filter((part) => part.target_id === row.id && part.accuracy !== null && part.accuracy_ci95?.length === 2)
    .map((part) => ({ weight: weights[part.benchmark ?? ''] ?? 1, share: part.accuracy!, low: part.accuracy_ci95![0]!, high: part.accuracy_ci95![1]! }))
  return weightedInterval(parts)
}

/** Differences in the order of the runs. What the service calls not established is drawn hollow. */
function Iterations({ report, runs }: { report: ComparisonReport; runs: Map<string, Run> }) {
  const t = useTexts(messages)
  const translated = useSayings(report.sayings)
  const ends = (pair: readonly number[] | null | undefined): [number, number] | null => (pair?.length === 2 ? [pair[0]!, pair[1]!] : null)
  return (
    <Section title={t('iterations')} note={t('iterationsNote')}>
      <div className="charts-two">
        <Forest
          title={t('quality')}
          show={(value) => inPoints(value, 0)}
          rows={report.comparisons.map((row) => ({
            key: keyOf(row),
            name: nameOf(runs, report, row),
            value: row.quality_delta,
            interval: ends(row.quality_delta_adaptive_ci95),
            tone: row.verdict === 'better' ? 'up' : row.verdict === 'worse' ? 'down' : 'open',
          }))}
        />
        <Forest
          title={t('savingTotal')}
          show={savedPercent}
          limits={[-150, 100]}
          rows={report.comparisons.map((row) => {
            const interval = ends(row.total_cost_saving?.ci95_percent)
            return {
              key: keyOf(row),
              name: nameOf(runs, report, row),
              value: row.total_cost_saving_percent,
              interval,
              tone: !interval ? 'open' : interval[0] > 0 ? 'up' : interval[1] < 0 ? 'down' : 'open',
              why: row.total_cost_comparison_reason === null ? undefined : translated(row.total_cost_comparison_reason),
            }
          })}
        />
      </div>
    </Section>
  )
}
