import { visible } from '../../format/visible'
import { Button, Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { runsQuery, spendQuery } from '../../api/queries'
import { isActive, type RunRow } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { Page } from '../../components/Page'
import { CellProgress } from '../../components/Progress'
import { SpendBar } from '../../components/SpendBar'
import { StatusPill, TargetChip } from '../../components/Status'
import { Scroll } from '../../components/Scroll'
import { useNow } from '../../components/useNow'
import { usePace } from '../../components/usePace'
import { Value } from '../../components/Value'
import { command, optionsOf } from '../../format/command'
import { count, decimal } from '../../format/numbers'
import { ago, duration, moment } from '../../format/time'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { useEnd } from '../../i18n/ends'
import { Views } from '../../kept/Views'
import { messages } from './messages'
import { MODES, PROFILES, runsSearch, STATUSES, type RunsSearch } from './search'

const PAGE_SIZE = 25

const PRESETS = [
  ['running', { status: 'running' }],
  ['failed', { status: 'failed' }],
] as const

/** A view of this list: its page is no part of it. */
function viewOf(raw: Record<string, unknown>): RunsSearch {
  const { after: _after, ...filters } = runsSearch(raw)
  return filters
}

/** All runs, newest first, as the service filters and pages them. */
export function RunsPage() {
  const t = useTexts(messages)
  const words = useTexts(common)
  const search = useSearch({ from: '/runs' })
  const runs = useQuery(runsQuery({ ...search, limit: PAGE_SIZE }))
  const navigate = useNavigate({ from: '/runs' })
  const { after: _after, ...filters } = search
  const filtered = Boolean(search.q || search.status || search.mode || search.profile)
  return (
    <Page title={t('title')} lead={t('lead')} actions={<CopyCommand text={command('runs', ...optionsOf({ query: search.q, status: search.status, mode: search.mode, profile: search.profile }))} />}>
      <Filters search={search} />
      <Views list="runs" current={filters} presets={PRESETS} reader={viewOf} onChoose={(chosen) => void navigate({ to: '/runs', search: chosen, replace: true })} />
      <Loaded query={runs} what={t('what')}>
        {(page) => (
          <>
            <p className="note" role="status">
              {t('total', { n: count(page.total) ?? '' })}
              {page.runs.some((run) => isActive(run.status)) && ` · ${t('active', { n: page.runs.filter((run) => isActive(run.status)).length })}`}
              {` · ${t('updated', { time: moment(runs.dataUpdatedAt / 1000) ?? '' })}`}
            </p>
            {page.runs.length > 0 ? (
              <RunsTable runs={page.runs} />
            ) : filtered ? (
              <Empty title={t('noMatch')} />
            ) : (
              <Empty title={t('none')}>
                <p>{t('noneText')}</p>
                <Link to="/create" className="button-link primary">
                  {words('create')}
                </Link>
              </Empty>
            )}
            <Pager search={search} next={page.next_cursor} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Filters({ search }: { search: RunsSearch }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const navigate = useNavigate({ from: '/runs' })
  const [typed, setTyped] = useState(search.q ?? '')
  useEffect(() => setTyped(search.q ?? ''), [search.q])
  const change = (part: RunsSearch) =>
    void navigate({ to: '/runs', search: (old) => ({ ...old, after: undefined, ...part }), replace: true })
  useEffect(() => {
    if (typed === (search.q ?? '')) return undefined
    const timer = setTimeout(() => change({ q: typed || undefined }), 250)
    return () => clearTimeout(timer)
  })
  return (
    <search className="filters">
      <TextInput label={t('search')} placeholder={t('searchHint')} value={typed} maxLength={200} onChange={(event) => setTyped(event.currentTarget.value)} />
      <Select
        label={t('status')}
        placeholder={t('all')}
        clearable
        data={STATUSES.map((value) => ({ value, label: words(`status_${value}`) }))}
        value={search.status ?? null}
        onChange={(value) => change({ status: (value as RunsSearch['status']) ?? undefined })}
      />
      <Select
        label={t('mode')}
        placeholder={t('all')}
        clearable
        data={MODES.map((value) => ({ value, label: words(`mode_${value}`) }))}
        value={search.mode ?? null}
        onChange={(value) => change({ mode: (value as RunsSearch['mode']) ?? undefined })}
      />
      <Select
        label={t('profile')}
        placeholder={t('all')}
        clearable
        data={PROFILES.map((value) => ({ value, label: words(`profile_${value}`) }))}
        value={search.profile ?? null}
        onChange={(value) => change({ profile: (value as RunsSearch['profile']) ?? undefined })}
      />
      {(search.q || search.status || search.mode || search.profile) && (
        <Button variant="default" onClick={() => change({ q: undefined, status: undefined, mode: undefined, profile: undefined })}>
          {t('clear')}
        </Button>
      )}
    </search>
  )
}

function RunsTable({ runs }: { runs: RunRow[] }) {
  const t = useTexts(messages)
  const now = useNow(10_000)
  return (
    <Scroll label={t('table')} className="section flush">
      <table className="table stack" aria-label={t('table')}>
        <thead>
          <tr>
            <th scope="col">{t('run')}</th>
            <th scope="col">{t('kind')}</th>
            <th scope="col">{t('status')}</th>
            <th scope="col">{t('progress')}</th>
            <th scope="col">{t('pace')}</th>
            <th scope="col">{t('spend')}</th>
            <th scope="col">{t('update')}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <Row key={run.id} run={run} now={now} />
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Row({ run, now }: { run: RunRow; now: number }) {
  const t = useTexts(messages)
  const end = useEnd()
  const words = useTexts(common)
  const spend = useQuery(spendQuery(run.id, isActive(run.status)))
  const { name, mode, profile, targets } = run.manifest
  return (
    <tr data-run={run.id}>
      <th scope="row" data-label={t('run')}>
        <Link to="/runs/$runId" params={{ runId: run.id }} className="row-link">
          {visible(name || run.id)}
        </Link>
        <span className="chips">
          {targets.map((target) => (
            <TargetChip key={target.id} model={target.model} kind={target.kind} />
          ))}
        </span>
      </th>
      <td data-label={t('kind')}>
        {words(`mode_${mode}` as 'mode_live')}
        <span className="soft block">{words(`profile_${profile}` as 'profile_quick')}</span>
      </td>
      <td data-label={t('status')}>
        <StatusPill status={run.status} />
        {run.reason && <span className="note block">{end(run.reason)}</span>}
      </td>
      <td data-label={t('progress')}>
        <CellProgress progress={run.progress} />
      </td>
      <td data-label={t('pace')}>
        <PaceCell run={run} />
      </td>
      <td data-label={t('spend')}>
        <SpendBar spend={spend.data} />
      </td>
      <td data-label={t('update')}>
        <time dateTime={new Date((run.updated_at ?? 0) * 1000).toISOString()} title={moment(run.updated_at) ?? ''}>
          <Value>{ago(run.updated_at, now)}</Value>
        </time>
        <span className="soft block">{t('created', { when: moment(run.created_at) ?? '' })}</span>
      </td>
    </tr>
  )
}

function PaceCell({ run }: { run: RunRow }) {
  const t = useTexts(messages)
  const pace = usePace(run)
  if (!isActive(run.status)) {
    const wall = run.updated_at !== null && run.created_at !== null ? run.updated_at - run.created_at : null
    return <span className="soft">{t('took', { time: duration(wall) ?? '' })}</span>
  }
  if (!pace) return <Value why={t('waiting')}>{null}</Value>
  const words = { from: duration(Math.round(pace.earliest)) ?? '', to: duration(Math.round(pace.latest)) ?? '' }
  return (
    <span className="figure">
      {t('rate', { n: decimal(pace.rate, pace.rate < 10 ? 1 : 0) ?? '' })}
      <span className="soft block">{words.from === words.to ? t('leftOne', words) : t('left', words)}</span>
    </span>
  )
}

function Pager({ search, next }: { search: RunsSearch; next: string | null }) {
  const t = useTexts(messages)
  if (!search.after && !next) return null
  return (
    <nav className="pager" aria-label={t('table')}>
      {search.after && (
        <Link to="/runs" search={{ ...search, after: undefined }} className="button-link">
          {t('newest')}
        </Link>
      )}
      {next && (
        <Link to="/runs" search={{ ...search, after: next }} className="button-link">
          {t('older')}
        </Link>
      )}
    </nav>
  )
}
