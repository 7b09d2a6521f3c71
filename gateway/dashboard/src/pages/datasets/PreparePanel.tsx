import { Alert, Button, Select } from '@mantine/core'
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, type Body } from '../../api/client'
import { IDLE_MS } from '../../api/queries'
import type { Preparation } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { Loaded } from '../../components/Notices'
import { Section } from '../../components/Page'
import { StatusPill } from '../../components/Status'
import { Scroll } from '../../components/Scroll'
import { command } from '../../format/command'
import { bytes, count } from '../../format/numbers'
import { moment } from '../../format/time'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { useProblem, useRefusal } from '../../i18n/problems'
import { messages } from './messages'
import { webAddress } from './names'

const PROFILES = ['smoke', 'quick', 'standard'] as const
const WORKING_MS = 1_500

const preparationsQuery = queryOptions({
  queryKey: ['preparations'],
  queryFn: ({ signal }) => get('/dataset-preparations', { signal }),
  refetchInterval: (query) => (query.state.data?.preparations.some(isWorking) ? WORKING_MS : IDLE_MS),
})

/** Whether a preparation may still change. */
export function isWorking(job: Preparation): boolean {
  return job.status === 'queued' || job.status === 'running'
}

/** Starts a preparation; the same request again is the job that does it already. */
function usePrepare() {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (body: Body<'/dataset-preparations'>) => post('/dataset-preparations', { body }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ['preparations'] }),
  })
}

/** Prepares a benchmark in the background, and shows what became of earlier wishes. */
export function PreparePanel() {
  const t = useTexts(messages)
  const problem = useProblem()
  const words = useTexts(common)
  const session = useSession()
  const options = useQuery({ queryKey: ['preparation-options'], queryFn: ({ signal }) => get('/dataset-preparations/options', { signal }), staleTime: 60_000 })
  const [benchmark, setBenchmark] = useState<string | null>(null)
  const [profile, setProfile] = useState<(typeof PROFILES)[number]>('smoke')
  const prepare = usePrepare()
  return (
    <Section title={t('prepare')} note={t('prepareNote')}>
      <Loaded query={options} what={t('whatOptions')}>
        {({ benchmarks }) => {
          const chosen = benchmarks.find((item) => item.id === benchmark)
          const link = chosen && webAddress(chosen.source_url)
          return (
            <>
              <div className="filters">
                <Select
                  label={t('benchmark')}
                  searchable
                  data={benchmarks.map((item) => ({ value: item.id, label: item.name, disabled: !item.available }))}
                  value={benchmark}
                  onChange={setBenchmark}
                />
                <Select
                  label={t('size')}
                  data={PROFILES.map((name) => ({ value: name, label: chosen ? `${words(`profile_${name}`)} (${count(chosen.profiles[name])})` : words(`profile_${name}`) }))}
                  value={profile}
                  onChange={(value) => setProfile((value as typeof profile | null) ?? 'smoke')}
                  allowDeselect={false}
                />
                <Button disabled={!benchmark || !session.can_write} loading={prepare.isPending} onClick={() => benchmark && prepare.mutate({ benchmarks: [benchmark], profile })}>
                  {t('prepareButton')}
                </Button>
                {benchmark && <CopyCommand text={command('dataset', 'prepare', '--benchmark', benchmark, '--profile', profile)} />}
              </div>
              {!session.can_write && <p className="note">{t('mayNot')}</p>}
              {chosen && (
                <p className="note wrap">
                  {t('source')}:{' '}
                  {link ? (
                    <a href={link} rel="noreferrer noopener" target="_blank">
                      {chosen.source_url}
                    </a>
                  ) : (
                    chosen.source_url
                  )}{' '}
                  · {t('revision')} <span className="mono">{chosen.revision}</span> · {ACCESS.some((id) => id === chosen.id) ? t(`access_${chosen.id as (typeof ACCESS)[number]}`) : chosen.access_note}
                </p>
              )}
              {prepare.error && (
                <Alert color="red" role="alert">
                  {problem(prepare.error)}
                </Alert>
              )}
            </>
          )
        }}
      </Loaded>
      <History onRetry={(job) => prepare.mutate({ benchmarks: job.request?.benchmarks ?? [], profile: job.request?.profile || 'quick' })} />
    </Section>
  )
}

// Notes of the built-in sources; others bring their own words.
const ACCESS = ['arc-agi-2', 'gpqa-diamond', 'hle', 'livecodebench', 'mmlu-pro', 'scicode', 'simpleqa-verified', 'tau3', 'terminal-bench-2.1'] as const

function History({ onRetry }: { onRetry: (job: Preparation) => void }) {
  const t = useTexts(messages)
  const refusal = useRefusal()
  const jobs = useQuery(preparationsQuery)
  // Work opens the list; it stays open when the work is done, until somebody folds it.
  const [open, setOpen] = useState<boolean | null>(null)
  const working = jobs.data?.preparations.some(isWorking) ?? false
  return (
    <details className="fold" open={open ?? working} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('history')}</summary>
      <Loaded query={jobs} what={t('whatJobs')}>
        {({ preparations }) =>
          preparations.length === 0 ? (
            <p className="note">{t('noJobs')}</p>
          ) : (
            <Scroll label={t('history')}>
              <table className="table" aria-label={t('history')}>
                <thead>
                  <tr>
                    <th scope="col">{t('benchmark')}</th>
                    <th scope="col">{t('jobPhase')}</th>
                    <th scope="col">{t('jobTime')}</th>
                    <th scope="col" aria-hidden="true" />
                  </tr>
                </thead>
                <tbody>
                  {preparations.map((job) => (
                    <tr key={job.id}>
                      <th scope="row">
                        {job.request?.benchmarks.join(', ')} <span className="soft">{job.request?.profile}</span>
                      </th>
                      <td>
                        <StatusPill status={job.status} /> <JobPhase job={job} />
                        {job.error && <span className="plain bad block">{refusal(job.reason ?? '', job.error)}</span>}
                      </td>
                      <td>{moment(job.created_at)}</td>
                      <td>
                        {job.dataset && (
                          <Link to="/datasets/$datasetId" params={{ datasetId: job.dataset.id }}>
                            {t('viewDataset')}
                          </Link>
                        )}
                        {job.status === 'failed' && !job.request?.source_path && (
                          <Button size="compact-sm" variant="default" onClick={() => onRetry(job)}>
                            {t('retry')}
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Loaded>
    </details>
  )
}

/** What a preparation is doing, in words. */
export function JobPhase({ job }: { job: Preparation }) {
  const t = useTexts(messages)
  if (!isWorking(job)) return null
  const key = `phase_${job.phase}` as Parameters<typeof t>[0]
  const phase = t(key) === key ? job.phase : t(key)
  return (
    <span className="soft">
      {phase} {job.benchmark ?? ''} · {t('done', { done: job.done_count, total: job.total_count })}
      {job.byte_count > 0 && ` · ${t('bytesRead', { size: bytes(job.byte_count) ?? '' })}`}
    </span>
  )
}
