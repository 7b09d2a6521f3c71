import { Button, Select } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { address, get } from '../../api/client'
import { stringifyExact } from '../../api/exactJson'
import { reportQuery, runQuery } from '../../api/queries'
import { isActive, type Run, type RunEvent } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { JsonBlock } from '../../components/JsonBlock'
import { Empty, Loading, Stale, Unavailable } from '../../components/Notices'
import { Section } from '../../components/Page'
import { Value } from '../../components/Value'
import { command } from '../../format/command'
import { moment } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { Reuse } from './reuse/Reuse'

/** What the list can be narrowed to at once, by the types that the service is asked for. */
const EVENT_GROUPS = {
  eventLifecycle: 'created,running,paused,resumed,concurrency_changed,cancellation_requested,drained,completed,failed,cancelled,interrupted',
  eventCases: 'case_failed,case_sent_unknown',
  eventAttention: 'failed,interrupted,failure_observed,case_failed,case_sent_unknown',
} as const
const EVENT_TYPES = ['created', 'running', 'completed', 'failed', 'cancelled', 'interrupted', 'cancellation_requested', 'case_failed'] as const
const PAGE = 25

/** What the run was made from, what happened to it, and everything in its raw form. */
export function EvidenceTab() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const report = useQuery(reportQuery(runId, run.data?.updated_at ?? null))
  if (!run.data) return <Loading />
  return (
    <>
      <Identity run={run.data} />
      <Events run={run.data} />
      {!isActive(run.data.status) && run.data.manifest.mode === 'live' && <Reuse run={run.data} />}
      <Section title={t('raw')}>
        <JsonBlock title={t('manifest')} value={run.data.manifest} />
        <JsonBlock title={t('provenance')} value={run.data.provenance} />
        {report.data && <JsonBlock title={t('reportJson')} value={report.data} />}
        <p className="actions">
          <a className="button-link" href={address('/runs/{run_id}/report', { run_id: runId })}>
            {t('rawReport')}
          </a>
          <a className="button-link" href={address('/runs/{run_id}/results', { run_id: runId })}>
            {t('rawResults')}
          </a>
          <a className="button-link" href={address('/runs/{run_id}/events', { run_id: runId })}>
            {t('rawEvents')}
          </a>
        </p>
      </Section>
    </>
  )
}

function Identity({ run }: { run: Run }) {
  const t = useTexts(messages)
  const facts: [string, string | undefined][] = [
    [t('runId'), run.id],
    [t('owner'), run.owner],
    [t('planSha'), run.plan_sha256],
    [t('caseSha'), run.manifest.case_sha256],
    [t('key'), run.idempotency_key],
  ]
  return (
    <Section title={t('identity')}>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label} className="fact">
            <dt>{label}</dt>
            <dd className="mono">
              <Value>{value}</Value>
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}

function Events({ run }: { run: Run }) {
  const t = useTexts(messages)
  const { type } = useSearch({ from: '/runs/$runId/evidence' })
  const navigate = useNavigate({ from: '/runs/$runId/evidence' })
  const events = useInfiniteQuery({
    queryKey: ['events', run.id, type, isActive(run.status) ? null : run.updated_at],
    queryFn: ({ pageParam, signal }) => get('/runs/{run_id}/events', { path: { run_id: run.id }, query: { after: pageParam, limit: PAGE, type }, signal }),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  })
  const rows = events.data?.pages.flatMap((page) => page.events)
  const label = (name: string) => {
    const key = `event_${name}` as Parameters<typeof t>[0]
    const word = t(key)
    return word === key ? name.replaceAll('_', ' ') : word
  }
  return (
    <Section
      title={t('events')}
      note={rows && t('eventsLoaded', { n: rows.length })}
      actions={
        <>
          <CopyCommand text={command('show', run.id, '--events')} />
          <Select
            aria-label={t('eventType')}
            placeholder={t('all')}
            clearable
            data={[
              ...Object.entries(EVENT_GROUPS).map(([name, value]) => ({ value: value as string, label: t(name as keyof typeof EVENT_GROUPS) })),
              ...EVENT_TYPES.map((value) => ({ value: value as string, label: label(value) })),
            ]}
            value={type ?? null}
            onChange={(value) => void navigate({ search: { type: value ?? undefined }, replace: true, resetScroll: false })}
          />
        </>
      }
    >
      {/* A page that could not be read leaves the rows and the place where it goes on. */}
      {events.error && (rows ? <Stale error={events.error} /> : <Unavailable what={t('whatEvents')} error={events.error} retry={() => void events.refetch()} />)}
      {!rows && !events.error && <Loading />}
      {rows?.length === 0 && <Empty title={t('noEvents')} />}
      {rows && rows.length > 0 && (
        <ol className="events">
          {rows.map((event) => (
            <EventRow key={event.seq} event={event} label={label(event.type)} />
          ))}
        </ol>
      )}
      {events.hasNextPage && (
        <Button variant="default" loading={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
          {t('moreEvents')}
        </Button>
      )}
    </Section>
  )
}

function EventRow({ event, label }: { event: RunEvent; label: string }) {
  // Only short plain facts are shown; what an event carries beyond them stays in the raw JSON.
  const facts = Object.entries((event.data ?? {}) as Record<string, unknown>).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value) && value !== '')
  return (
    <li>
      <time className="soft figure">{moment(event.created_at)}</time>
      <strong>{label}</strong>
      <span className="soft wrap">
        {facts.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${typeof value === 'string' ? value.slice(0, 300) : stringifyExact(value)}`).join(' · ')}
      </span>
    </li>
  )
}
