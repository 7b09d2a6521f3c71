import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { reportQuery, runQuery } from '../../api/queries'
import { isActive, type Outcome } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { StatusPill } from '../../components/Status'
import { Value } from '../../components/Value'
import { VirtualTable, type Column } from '../../components/VirtualTable'
import { command } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { common } from '../../i18n/common'
import { NotesOf } from '../../kept/Notes'
import { Views } from '../../kept/Views'
import { useTexts } from '../../i18n/messages'
import { Choice, ClearFilters, SearchBox } from './ListFilters'
import { outcomeBlock, outcomeFilter } from './lists'
import { messages } from './messages'
import { OutcomePane } from './OutcomePane'
import { OUTCOME_STATUSES, type QuestionsSearch , questionsSearch } from './search'
import { routeOf, type Route } from './preview'
import { useWalk } from '../../components/useWalk'
import { Verdict } from './Verdict'

const PRESETS = [
  ['wrong', { correct: false }],
  ['failed', { status: 'failed' }],
  ['dearest', { by: 'cost', desc: true }],
  ['slowest', { by: 'latency', desc: true }],
] as const

// A preview has no grades, costs or times.
const PREVIEW_PRESETS = [['failed', { status: 'failed' }]] as const

/** A view of this list: what is open in it is no part of it. */
function viewOf(raw: Record<string, unknown>): QuestionsSearch {
  const { cell: _cell, at: _at, ...filters } = questionsSearch(raw)
  return filters
}

/** Every outcome of a run: filtered, ordered and paged by the service. */
export function QuestionsTab() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const search = useSearch({ from: '/runs/$runId/questions' })
  const navigate = useNavigate({ from: '/runs/$runId/questions' })
  const run = useQuery(runQuery(runId))
  const moment = run.data?.updated_at ?? null
  const { cell: _cell, at: _at, ...filters } = search
  const filterKey = JSON.stringify(outcomeFilter(filters))
  // The block function's identity is the list's: it changes with the filters and with the run, and with nothing else.
  const block = useCallback((offset: number) => outcomeBlock(runId, filters, moment, offset), [runId, filterKey, moment])
  const first = useQuery(block(0))
  const total = first.data?.total ?? 0
  const change = useCallback(
    (part: Partial<QuestionsSearch>) => void navigate({ search: (old) => ({ ...old, at: undefined, ...part }), replace: true, resetScroll: false }),
    [navigate],
  )
  const open = useCallback(
    (row: Outcome, place: number) => void navigate({ search: (old) => ({ ...old, cell: row.cell, at: place }), resetScroll: false, replace: search.cell !== undefined }),
    [navigate, search.cell],
  )
  const close = useCallback(() => void navigate({ search: (old) => ({ ...old, cell: undefined, at: undefined }), resetScroll: false }), [navigate])
  const walk = useWalk(block, total, search.at, open)
  const filtered = Object.values(outcomeFilter({ ...filters, by: undefined, desc: undefined })).some((value) => value !== undefined)
  const preview = run.data?.manifest.mode === 'preview'
  const columns = useColumns(preview)
  return (
    <div className={search.cell === undefined ? undefined : 'split'}>
      <div className="stack-gap min0">
        <Filters search={search} onChange={change} filtered={filtered} />
        <Views list="questions" current={filters} presets={preview ? PREVIEW_PRESETS : PRESETS} reader={viewOf} onChoose={(chosen) => void navigate({ search: chosen, replace: true, resetScroll: false })} />
        <NotesOf runId={runId} />
        <Loaded query={first} what={t('whatQuestions')}>
          {(page) => (
            <>
              <div className="section-head">
                <p className="note" role="status">
                  {t('rows', { n: count(page.total) ?? '' })} · {t('keys')}
                </p>
                <CopyCommand text={command('show', runId, '--results')} />
              </div>
              {page.total === 0 ? (
                <Empty title={filtered ? t('noRows') : t('noOutcomes')} />
              ) : (
                <VirtualTable
                  label={t('questions')}
                  columns={columns}
                  total={page.total}
                  block={block}
                  keyOf={(row) => String(row.cell)}
                  openKey={search.cell === undefined ? undefined : String(search.cell)}
                  openPlace={search.at}
                  onOpen={open}
                  order={{ by: search.by, descending: search.desc ?? false }}
                  onOrder={(order) => change({ by: order.by as QuestionsSearch['by'], desc: order.descending || undefined })}
                />
              )}
            </>
          )}
        </Loaded>
      </div>
      {search.cell !== undefined && run.data && (
        <OutcomePane key={search.cell} run={run.data} cell={search.cell} walk={walk} onClose={close} active={isActive(run.data.status)} />
      )}
    </div>
  )
}

function useColumns(preview: boolean): Column<Outcome>[] {
  const t = useTexts(messages)
  return useMemo(() => {
    const named: Column<Outcome>[] = [
      { key: 'case', label: t('case'), width: 'minmax(12rem, 2fr)', cell: (row) => row.case_id },
      { key: 'target', label: t('target'), width: 'minmax(6rem, 1fr)', cell: (row) => row.target_id },
    ]
    if (preview) {
      const said = (part: keyof Route) => (row: Outcome) => <Value why={t('notRecorded')}>{routeOf(row)?.[part]?.toString()}</Value>
      return [
        ...named,
        { key: 'decision', label: t('decision'), width: 'minmax(8rem, 1fr)', cell: said('decision') },
        { key: 'model', label: t('model'), width: 'minmax(8rem, 1fr)', cell: said('model') },
        { key: 'selection', label: t('selectionStatus'), width: 'minmax(8rem, 1fr)', cell: said('status') },
        { key: 'status', label: t('status'), width: '7.5rem', cell: (row) => <StatusPill status={row.status} /> },
      ]
    }
    return [
      ...named,
      { key: 'verdict', label: t('verdict'), width: '7rem', cell: (row) => <Verdict correct={row.correct} status={row.status} /> },
      { key: 'status', label: t('status'), width: '7.5rem', cell: (row) => <StatusPill status={row.status} /> },
      { key: 'model', label: t('model'), width: 'minmax(6rem, 1fr)', cell: (row) => <Value>{row.model}</Value> },
      { key: 'cost', label: t('cost'), width: '7rem', numeric: true, orderBy: 'cost', cell: (row) => <Value>{usd(row.cost_usd)}</Value> },
      { key: 'latency', label: t('latencyOne'), width: '6.5rem', numeric: true, orderBy: 'latency', cell: (row) => <Value why={t('timeNote')}>{duration(row.subject_latency_s)}</Value> },
      { key: 'ttft', label: t('ttftOne'), width: '6.5rem', numeric: true, orderBy: 'ttft', cell: (row) => <Value why={t('timeNote')}>{duration(row.ttft_s)}</Value> },
    ]
  }, [t, preview])
}

function Filters({ search, onChange, filtered }: { search: QuestionsSearch; onChange: (part: Partial<QuestionsSearch>) => void; filtered: boolean }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const report = useQuery(reportQuery(runId, run.data?.updated_at ?? null))
  const targets = report.data?.summary?.targets ?? []
  // A preview has no grades.
  const preview = run.data?.manifest.mode === 'preview'
  const names = (found: readonly string[]) => [...new Set(found)].sort().map((name) => ({ value: name, label: name }))
  return (
    <search className="filters">
      <SearchBox value={search.q} onChange={(q) => onChange({ q })} />
      <Choice label={t('target')} value={search.target} options={(run.data?.manifest.targets ?? []).map(({ id }) => ({ value: id, label: id }))} onChange={(target) => onChange({ target })} />
      <Choice label={t('benchmark')} value={search.benchmark} options={names((report.data?.benchmarks ?? []).map((row) => row.benchmark ?? ''))} onChange={(benchmark) => onChange({ benchmark })} />
      {!preview && (
        <Choice
          label={t('verdict')}
          value={search.correct === undefined ? undefined : search.correct ? 'right' : 'wrong'}
          options={[
            { value: 'right', label: t('right') },
            { value: 'wrong', label: t('wrong') },
          ]}
          onChange={(value) => onChange({ correct: value === undefined ? undefined : value === 'right' })}
        />
      )}
      <Choice label={t('status')} value={search.status} options={OUTCOME_STATUSES.map((value) => ({ value, label: words(`status_${value}`) }))} onChange={(status) => onChange({ status })} />
      <Choice label={t('reason')} value={search.reason} options={names(targets.flatMap((target) => Object.keys(target.failure_reasons)))} onChange={(reason) => onChange({ reason })} />
      <Choice label={t('model')} value={search.model} options={names(targets.flatMap((target) => Object.keys(target.selected_models)))} onChange={(model) => onChange({ model })} />
      <Choice label={t('decision')} value={search.decision} options={names(targets.flatMap((target) => Object.keys(target.decisions)))} onChange={(decision) => onChange({ decision })} />
      {filtered && (
        <ClearFilters
          onClear={() =>
            onChange({ q: undefined, target: undefined, benchmark: undefined, correct: undefined, status: undefined, reason: undefined, model: undefined, decision: undefined })
          }
        />
      )}
    </search>
  )
}
