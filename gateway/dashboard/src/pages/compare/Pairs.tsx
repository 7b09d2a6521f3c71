import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import type { Run } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { Section } from '../../components/Page'
import { Value } from '../../components/Value'
import { VirtualTable, type Column } from '../../components/VirtualTable'
import { command, optionsOf } from '../../format/command'
import { count, signed, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useWalk } from '../../components/useWalk'
import { messages } from './messages'
import { keyOf, nameOf } from './names'
import { PairPane } from './PairPane'
import { countsQuery, pairBlock, type Comparison, type ComparisonReport, type Pair, type PairFilter } from './queries'
import { OUTCOMES, type CompareSearch } from './search'
import { SideMark } from './SideMark'

interface Props {
  report: ComparisonReport
  row: Comparison
  runs: Map<string, Run>
  search: CompareSearch
  onChoose: (row: Comparison) => void
}

/** Every question of one comparison: filtered, ordered and paged by the service. */
export function Pairs({ report, row, runs, search, onChoose }: Props) {
  const t = useTexts(messages)
  const navigate = useNavigate({ from: '/compare' })
  const filter: PairFilter = {
    baseline: report.baseline_run_id,
    baselineTarget: row.baseline_target_id,
    candidate: row.candidate_run_id,
    target: row.candidate_target_id,
    outcome: search.outcome,
    benchmark: search.benchmark,
    by: search.by,
    desc: search.desc,
  }
  const filterKey = JSON.stringify(filter)
  // The block function's identity is the list's: it changes with the filters and with nothing else.
  const block = useCallback((offset: number) => pairBlock(JSON.parse(filterKey) as PairFilter, offset), [filterKey])
  const first = useQuery(block(0))
  const change = useCallback(
    (part: Partial<CompareSearch>) => void navigate({ search: (old) => ({ ...old, at: undefined, ...part }), replace: true, resetScroll: false }),
    [navigate],
  )
  const open = useCallback(
    (pair: Pair, place: number) =>
      void navigate({
        search: (old) => ({ ...old, of: row.candidate_run_id, target: row.candidate_target_id, case: pair.case_id, at: place }),
        resetScroll: false,
        replace: search.case !== undefined,
      }),
    [navigate, row, search.case],
  )
  const close = useCallback(() => void navigate({ search: (old) => ({ ...old, case: undefined, at: undefined }), resetScroll: false }), [navigate])
  const walk = useWalk(block, first.data?.total ?? 0, search.at, open)
  const columns = useColumns()
  return (
    <Section id="questions" title={t('questions')} note={t('questionsOf', { candidate: nameOf(runs, report, row), baseline: row.baseline_target_id })} actions={<CopyCommand text={pairsCommand(filter)} />}>
      <div className="filters">
        {report.comparisons.length > 1 && (
          <Select
            label={t('comparison')}
            data={report.comparisons.map((other) => ({ value: keyOf(other), label: nameOf(runs, report, other) }))}
            value={keyOf(row)}
            allowDeselect={false}
            onChange={(value) => {
              const found = report.comparisons.find((other) => keyOf(other) === value)
              if (found) onChoose(found)
            }}
            className="comparison-select"
          />
        )}
        <Benchmarks run={runs.get(report.baseline_run_id)} value={search.benchmark} onChange={(benchmark) => change({ benchmark })} />
      </div>
      <Chips filter={filter} onChange={(outcome) => change({ outcome })} />
      <div className={search.case === undefined ? undefined : 'split pair-split'}>
        <div className="stack-gap min0">
          <Loaded query={first} what={t('whatPairs')}>
            {(page) =>
              page.total === 0 ? (
                <Empty title={t('noPairs')} />
              ) : (
                <VirtualTable
                  label={t('questions')}
                  columns={columns}
                  total={page.total}
                  block={block}
                  keyOf={(pair) => pair.case_id}
                  openKey={search.case}
                  openPlace={search.at}
                  onOpen={open}
                  order={{ by: search.by, descending: search.desc ?? false }}
                  onOrder={(order) => change({ by: order.by as CompareSearch['by'], desc: order.descending || undefined })}
                />
              )
            }
          </Loaded>
          <p className="note">{t('keys')}</p>
        </div>
        {search.case !== undefined && <PairPane key={search.case} filter={filter} caseId={search.case} walk={walk} diff={search.diff ?? 'words'} onDiff={(diff) => change({ diff, at: search.at })} onClose={close} />}
      </div>
    </Section>
  )
}

function pairsCommand(filter: PairFilter): string {
  const { baseline, candidate, baselineTarget, target, outcome, benchmark, by } = filter
  return command('pairs', baseline, candidate, ...optionsOf({ 'baseline-target': baselineTarget, 'candidate-target': target, outcome, benchmark, sort: by }), ...(filter.desc ? ['--descending'] : []))
}

function useColumns(): Column<Pair>[] {
  const t = useTexts(messages)
  return useMemo(
    () => [
      { key: 'case', label: t('case'), width: 'minmax(12rem, 1.6fr)', cell: (pair) => pair.case_id },
      { key: 'category', label: t('category'), width: 'minmax(6rem, 1fr)', cell: (pair) => <Value>{pair.stratum || null}</Value> },
      { key: 'result', label: t('result'), width: '7.5rem', orderBy: 'outcome', cell: (pair) => <Outcome pair={pair} /> },
      { key: 'baseline', label: t('reference'), width: 'minmax(8rem, 1fr)', cell: (pair) => <SideMark side={pair.baseline} /> },
      { key: 'candidate', label: t('candidates'), width: 'minmax(8rem, 1fr)', cell: (pair) => <SideMark side={pair.candidate} /> },
      { key: 'model', label: t('model'), width: 'minmax(7rem, 1fr)', cell: (pair) => <Value>{pair.candidate?.model}</Value> },
      { key: 'decision', label: t('decision'), width: 'minmax(7rem, 1fr)', cell: (pair) => <Value why={t('noDecision')}>{pair.candidate?.decision}</Value> },
      { key: 'cost', label: t('costDelta'), width: '7rem', numeric: true, orderBy: 'cost_delta', cell: (pair) => <Value why={t('unknownSide')}>{signed(pair.cost_delta_usd, usd)}</Value> },
      { key: 'time', label: t('timeDelta'), width: '7rem', numeric: true, orderBy: 'latency_delta', cell: (pair) => <Value why={t('unknownSide')}>{signed(pair.latency_delta_s, duration)}</Value> },
    ],
    [t],
  )
}

function Outcome({ pair }: { pair: Pair }) {
  const t = useTexts(messages)
  if (pair.outcome === 'win') return <span className="good">▲ {t('winOne')}</span>
  if (pair.outcome === 'loss') return <span className="bad">▼ {t('lossOne')}</span>
  return <span className="soft">{pair.candidate?.correct === true ? `= ${t('tieRight')}` : `= ${t('tieWrong')}`}</span>
}

/** The kinds of questions with their numbers, whatever kind is listed. */
function Chips({ filter, onChange }: { filter: PairFilter; onChange: (outcome: CompareSearch['outcome']) => void }) {
  const t = useTexts(messages)
  const counts = useQuery(countsQuery(filter))
  const total = counts.data && Object.values(counts.data).reduce((sum, n) => sum + n, 0)
  return (
    <div className="chip-row" role="group" aria-label={t('result')}>
      <Chip label={t('all')} n={total} on={filter.outcome === undefined} onClick={() => onChange(undefined)} />
      {OUTCOMES.map((outcome) => (
        <Chip key={outcome} label={t(outcome)} n={counts.data?.[outcome]} on={filter.outcome === outcome} onClick={() => onChange(outcome)} />
      ))}
    </div>
  )
}

function Chip({ label, n, on, onClick }: { label: string; n: number | undefined; on: boolean; onClick: () => void }) {
  return (
    <button type="button" className="chip-button" aria-pressed={on} onClick={onClick}>
      {label} <span className="figure">{count(n) ?? '…'}</span>
    </button>
  )
}

function Benchmarks({ run, value, onChange }: { run: Run | undefined; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const t = useTexts(messages)
  const names = [...new Set([...Object.keys(run?.manifest.adapter_versions ?? {}), ...(value === undefined ? [] : [value])])].sort()
  if (names.length < 2 && value === undefined) return null
  return <Select label={t('benchmark')} placeholder={t('all')} clearable data={names} value={value ?? null} onChange={(chosen) => onChange(chosen ?? undefined)} />
}
