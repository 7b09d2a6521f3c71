import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { reportQuery, runQuery } from '../../api/queries'
import type { CallRow } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { StatusPill } from '../../components/Status'
import { Value } from '../../components/Value'
import { VirtualTable, type Column } from '../../components/VirtualTable'
import { command } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { common } from '../../i18n/common'
import { Views } from '../../kept/Views'
import { useTexts } from '../../i18n/messages'
import { CallPane } from './CallPane'
import { Choice, ClearFilters } from './ListFilters'
import { callBlock, callFilter } from './lists'
import { messages } from './messages'
import { useRole } from './useRole'
import { CALL_STATUSES, ROLES, type CallsSearch , callsSearch } from './search'
import { useWalk } from '../../components/useWalk'

const NO_FILTER: CallsSearch = {
  target: undefined,
  case: undefined,
  status: undefined,
  role: undefined,
  reason: undefined,
  model: undefined,
  decision: undefined,
  finish: undefined,
}

const PRESETS = [
  ['failed', { status: 'failed' }],
  ['dearest', { by: 'cost', desc: true }],
  ['slowest', { by: 'latency', desc: true }],
] as const

/** A view of this list: what is open in it is no part of it. */
function viewOf(raw: Record<string, unknown>): CallsSearch {
  const { call: _call, at: _at, ...filters } = callsSearch(raw)
  return filters
}

/** Every call of a run: filtered, ordered and paged by the service. */
export function CallsTab() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const search = useSearch({ from: '/runs/$runId/calls' })
  const navigate = useNavigate({ from: '/runs/$runId/calls' })
  const run = useQuery(runQuery(runId))
  const moment = run.data?.updated_at ?? null
  const { call: _call, at: _at, ...filters } = search
  const filterKey = JSON.stringify(callFilter(filters))
  const block = useCallback((offset: number) => callBlock(runId, filters, moment, offset), [runId, filterKey, moment])
  const first = useQuery(block(0))
  const total = first.data?.total ?? 0
  const change = useCallback(
    (part: Partial<CallsSearch>) => void navigate({ search: (old) => ({ ...old, at: undefined, ...part }), replace: true, resetScroll: false }),
    [navigate],
  )
  const open = useCallback(
    (row: CallRow, place: number) => void navigate({ search: (old) => ({ ...old, call: row.id, at: place }), resetScroll: false, replace: search.call !== undefined }),
    [navigate, search.call],
  )
  const close = useCallback(() => void navigate({ search: (old) => ({ ...old, call: undefined, at: undefined }), resetScroll: false }), [navigate])
  const walk = useWalk(block, total, search.at, open)
  const filtered = Object.values(callFilter({ ...filters, by: undefined, desc: undefined })).some((value) => value !== undefined)
  const columns = useColumns()
  return (
    <div className={search.call === undefined ? undefined : 'split'}>
      <div className="stack-gap min0">
        <Filters search={search} onChange={change} filtered={filtered} />
        <Views list="calls" current={filters} presets={PRESETS} reader={viewOf} onChoose={(chosen) => void navigate({ search: chosen, replace: true, resetScroll: false })} />
        <Loaded query={first} what={t('whatCalls')}>
          {(page) => (
            <>
              <div className="section-head">
                <p className="note" role="status">
                  {t('rows', { n: count(page.total) ?? '' })} · {t('keys')}
                </p>
                <CopyCommand text={command('show', runId, '--calls')} />
              </div>
              {page.total === 0 ? (
                <Empty title={filtered ? t('noRows') : t('noCalls')} />
              ) : (
                <VirtualTable
                  label={t('calls')}
                  columns={columns}
                  total={page.total}
                  block={block}
                  keyOf={(row) => row.id}
                  openKey={search.call}
                  openPlace={search.at}
                  onOpen={open}
                  order={{ by: search.by, descending: search.desc ?? false }}
                  onOrder={(order) => change({ by: order.by as CallsSearch['by'], desc: order.descending || undefined })}
                />
              )}
            </>
          )}
        </Loaded>
      </div>
      {search.call !== undefined && <CallPane key={search.call} runId={runId} callId={search.call} walk={walk} onClose={close} />}
    </div>
  )
}

function useColumns(): Column<CallRow>[] {
  const t = useTexts(messages)
  const role = useRole()
  return useMemo(
    () => [
      { key: 'case', label: t('case'), width: 'minmax(12rem, 2fr)', cell: (row) => row.case_id },
      { key: 'target', label: t('target'), width: 'minmax(6rem, 1fr)', cell: (row) => row.target_id },
      { key: 'role', label: t('role'), width: '6rem', cell: (row) => role(row.role) },
      { key: 'status', label: t('status'), width: '7.5rem', cell: (row) => <StatusPill status={row.status ?? ''} /> },
      { key: 'model', label: t('model'), width: 'minmax(6rem, 1fr)', cell: (row) => <Value>{row.selected_model ?? row.model}</Value> },
      { key: 'cost', label: t('cost'), width: '7rem', numeric: true, orderBy: 'cost', cell: (row) => <Value>{usd(row.cost_usd)}</Value> },
      { key: 'latency', label: t('latencyOne'), width: '6.5rem', numeric: true, orderBy: 'latency', cell: (row) => <Value why={t('timeNote')}>{duration(row.latency_s)}</Value> },
      { key: 'ttft', label: t('ttftOne'), width: '6.5rem', numeric: true, orderBy: 'ttft', cell: (row) => <Value why={t('timeNote')}>{duration(row.ttft_s)}</Value> },
    ],
    [t, role],
  )
}

function Filters({ search, onChange, filtered }: { search: CallsSearch; onChange: (part: Partial<CallsSearch>) => void; filtered: boolean }) {
  const t = useTexts(messages)
  const role = useRole()
  const words = useTexts(common)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const report = useQuery(reportQuery(runId, run.data?.updated_at ?? null))
  const targets = report.data?.summary?.targets ?? []
  const names = (found: readonly string[]) => [...new Set(found)].sort().map((name) => ({ value: name, label: name }))
  return (
    <search className="filters">
      {search.case && (
        <Choice label={t('case')} value={search.case} options={[]} onChange={(value) => onChange({ case: value })} />
      )}
      <Choice label={t('target')} value={search.target} options={(run.data?.manifest.targets ?? []).map(({ id }) => ({ value: id, label: id }))} onChange={(target) => onChange({ target })} />
      <Choice label={t('status')} value={search.status} options={CALL_STATUSES.map((value) => ({ value, label: words(`status_${value}`) }))} onChange={(status) => onChange({ status })} />
      <Choice label={t('role')} value={search.role} options={ROLES.map((value) => ({ value, label: role(value) }))} onChange={(role) => onChange({ role })} />
      <Choice label={t('model')} value={search.model} options={names(targets.flatMap((target) => Object.keys(target.selected_models)))} onChange={(model) => onChange({ model })} />
      <Choice label={t('decision')} value={search.decision} options={names(targets.flatMap((target) => Object.keys(target.decisions)))} onChange={(decision) => onChange({ decision })} />
      <Choice
        label={t('finish')}
        value={search.finish}
        options={names(targets.flatMap((target) => Object.keys(target.output_diagnostics?.subject_calls?.finish_reasons ?? {})))}
        onChange={(finish) => onChange({ finish })}
      />
      {filtered && <ClearFilters onClear={() => onChange(NO_FILTER)} />}
    </search>
  )
}
