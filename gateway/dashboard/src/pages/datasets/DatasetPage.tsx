import { visible } from '../../format/visible'
import { Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { get } from '../../api/client'
import { datasetQuery } from '../../api/queries'
import type { DatasetCase, DatasetDetail } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { DetailPane } from '../../components/DetailPane'
import { Empty, Loaded, LoadedPage } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { Question } from '../../components/Question'
import { useKeys } from '../../components/useKeys'
import { Value } from '../../components/Value'
import { command } from '../../format/command'
import { count } from '../../format/numbers'
import { moment } from '../../format/time'
import { common } from '../../i18n/common'
import { Pill } from '../../components/Status'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { friendlyName, webAddress } from './names'

const PAGE = 25
const TABS = [undefined, 'coverage', 'about'] as const

/** One dataset: its questions without answers, what it covers, where it comes from. */
export function DatasetPage() {
  const t = useTexts(messages)
  const { datasetId } = useParams({ from: '/datasets/$datasetId' })
  const dataset = useQuery(datasetQuery(datasetId))
  return (
    <LoadedPage query={dataset} what={t('whatOne')}>
      {(found) => <DatasetView dataset={found} />}
    </LoadedPage>
  )
}

function DatasetView({ dataset }: { dataset: DatasetDetail }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const { tab } = useSearch({ from: '/datasets/$datasetId' })
  const titles = Object.fromEntries(dataset.benchmarks.map(({ id, title }) => [id, title]))
  const name = friendlyName({ name: dataset.name, benchmarks: dataset.benchmarks.map(({ id }) => id) }, titles)
  const labels = { questions: t('tabQuestions'), coverage: t('tabCoverage'), about: t('tabAbout') }
  return (
    <Page
      title={name}
      lead={
        <span className="lead-line">
          <Pill tone={dataset.split === 'holdout' ? 'warn' : 'active'}>{dataset.split === 'holdout' ? t('holdout') : words(`profile_${dataset.profile}` as 'profile_quick')}</Pill>
          {t('questions', { n: count(dataset.case_count) ?? '' })} · {t('benchmarks', { n: dataset.benchmarks.length })}
        </span>
      }
      actions={
        <>
          <Link to="/create" search={{ dataset: dataset.id }} className="button-link primary">
            {t('evaluate')}
          </Link>
          <CopyCommand text={command('dataset', 'show', dataset.id)} />
        </>
      }
    >
      <nav className="tabs" aria-label={t('sections')}>
        {TABS.map((name) => (
          <Link
            key={name ?? 'questions'}
            from="/datasets/$datasetId"
            to="/datasets/$datasetId"
            params={{ datasetId: dataset.id }}
            search={name ? { tab: name } : {}}
            className="tab"
            aria-current={tab === name ? 'page' : undefined}
            // Which tab is open follows from the search alone; a filter does not close it.
            activeOptions={{ exact: true, includeSearch: true }}
            activeProps={{}}
          >
            {labels[name ?? 'questions']}
          </Link>
        ))}
      </nav>
      {tab === 'about' ? <About dataset={dataset} /> : tab === 'coverage' ? <Coverage dataset={dataset} /> : <Questions dataset={dataset} />}
    </Page>
  )
}

function Questions({ dataset }: { dataset: DatasetDetail }) {
  const t = useTexts(messages)
  const search = useSearch({ from: '/datasets/$datasetId' })
  const navigate = useNavigate({ from: '/datasets/$datasetId' })
  const { q, benchmark, category, cursor } = search
  const query = { q, benchmark, category, cursor, limit: PAGE }
  const page = useQuery({
    queryKey: ['dataset-cases', dataset.id, query],
    queryFn: ({ signal }) => get('/datasets/{dataset_id}/cases', { path: { dataset_id: dataset.id }, query, signal }),
    placeholderData: (previous) => previous,
    staleTime: Infinity,
  })
  const [typed, setTyped] = useState(q ?? '')
  const change = (part: Partial<typeof search>) => void navigate({ search: (old) => ({ ...old, cursor: undefined, case: undefined, ...part }), replace: true, resetScroll: false })
  const submit = () => typed !== (q ?? '') && change({ q: typed || undefined })
  const cases = page.data?.cases ?? []
  const open = useCallback((id: string | undefined) => void navigate({ search: (old) => ({ ...old, case: id }), replace: search.case !== undefined, resetScroll: false }), [navigate, search.case])
  const at = cases.findIndex((item) => item.id === search.case)
  useKeys(
    useMemo(
      () => ({
        j: () => open(cases[at + 1]?.id ?? search.case),
        k: () => open(cases[at - 1]?.id ?? search.case),
      }),
      [cases, at, open, search.case],
    ),
  )
  const groups = Object.entries(page.data?.categories ?? {}).sort()
  return (
    <div className={search.case ? 'split' : undefined}>
      <div className="stack-gap min0">
        <search className="filters">
          <TextInput label={t('searchText')} value={typed} maxLength={200} onChange={(event) => setTyped(event.currentTarget.value)} onBlur={submit} onKeyDown={(event) => event.key === 'Enter' && submit()} className="filter-text" />
          <Select label={t('benchmark')} placeholder={t('all')} clearable data={dataset.benchmarks.map(({ id, title, count: n }) => ({ value: id, label: `${title} (${count(n)})` }))} value={benchmark ?? null} onChange={(value) => change({ benchmark: value ?? undefined, category: undefined })} />
          <Select label={t('category')} placeholder={t('all')} clearable searchable data={groups.map(([name, n]) => ({ value: name, label: `${name} (${count(n)})` }))} value={category ?? null} onChange={(value) => change({ category: value ?? undefined })} />
        </search>
        <Loaded query={page} what={t('whatQuestions')}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={t('noQuestions')} />
            ) : (
              <>
                <p className="note" role="status">
                  {t('page', { from: (cursor ?? 0) + 1, to: (cursor ?? 0) + found.cases.length, total: count(found.total) ?? '' })} · {t('walk')}
                </p>
                <ol className="case-list" start={(cursor ?? 0) + 1}>
                  {found.cases.map((item, index) => (
                    <li key={item.id} data-open={item.id === search.case || undefined}>
                      <button type="button" className="case-row" onClick={() => open(item.id)} aria-expanded={item.id === search.case}>
                        <span className="case-number figure">{count((cursor ?? 0) + index + 1)}</span>
                        <span className="case-text" data-verbatim>{visible(item.question.slice(0, 240) || item.id)}</span>
                        <span className="soft case-tags">
                          {item.benchmark} · {item.category}
                        </span>
                      </button>
                    </li>
                  ))}
                </ol>
                <nav className="pager" aria-label={t('tabQuestions')}>
                  {(cursor ?? 0) > 0 && (
                    <Link from="/datasets/$datasetId" to="/datasets/$datasetId" params={{ datasetId: dataset.id }} search={(old) => ({ ...old, case: undefined, cursor: (cursor ?? 0) > PAGE ? (cursor ?? 0) - PAGE : undefined })} className="button-link">
                      {t('backward')}
                    </Link>
                  )}
                  {found.next_cursor !== null && (
                    <Link from="/datasets/$datasetId" to="/datasets/$datasetId" params={{ datasetId: dataset.id }} search={(old) => ({ ...old, case: undefined, cursor: found.next_cursor ?? undefined })} className="button-link">
                      {t('forward')}
                    </Link>
                  )}
                </nav>
              </>
            )
          }
        </Loaded>
      </div>
      {search.case && <CasePane dataset={dataset} caseId={search.case} known={cases[at]} onClose={() => open(undefined)} />}
    </div>
  )
}

function CasePane({ dataset, caseId, known, onClose }: { dataset: DatasetDetail; caseId: string; known: DatasetCase | undefined; onClose: () => void }) {
  const t = useTexts(messages)
  // A link may name a question that the page of the list does not hold.
  const found = useQuery({
    queryKey: ['dataset-case', dataset.id, caseId],
    queryFn: async ({ signal }) => (await get('/datasets/{dataset_id}/cases', { path: { dataset_id: dataset.id }, query: { case_id: caseId, limit: 1 }, signal })).cases,
    initialData: known ? [known] : undefined,
    staleTime: Infinity,
  })
  return (
    <DetailPane title={t('question')} onClose={onClose}>
      <Loaded query={found} what={t('whatQuestions')}>
        {(cases) =>
          cases[0] ? (
            <>
              <p className="note">
                {cases[0].benchmark} · {cases[0].category}
              </p>
              <Question question={cases[0]} />
              <details className="fold">
                <summary>{t('id')}</summary>
                <span className="mono wrap">{cases[0].id}</span>
              </details>
            </>
          ) : (
            <Empty title={t('noQuestions')} />
          )
        }
      </Loaded>
    </DetailPane>
  )
}

function Coverage({ dataset }: { dataset: DatasetDetail }) {
  const t = useTexts(messages)
  const { benchmark } = useSearch({ from: '/datasets/$datasetId' })
  const query = { benchmark, limit: 1 }
  const groups = useQuery({
    queryKey: ['dataset-groups', dataset.id, query],
    queryFn: ({ signal }) => get('/datasets/{dataset_id}/cases', { path: { dataset_id: dataset.id }, query, signal }),
    staleTime: Infinity,
  })
  const bar = (n: number, of: number) => (
    <span className="bar-track" aria-hidden>
      <span className="bar-fill" style={{ width: `${of > 0 ? (100 * n) / of : 0}%` }} />
    </span>
  )
  return (
    <div className="columns">
      <Section title={t('benchmark')} note={t('coverageNote')}>
        <ul className="bars plain-list">
          {dataset.benchmarks.map(({ id, title, count: n }) => (
            <li key={id}>
              <Link from="/datasets/$datasetId" to="/datasets/$datasetId" params={{ datasetId: dataset.id }} search={{ tab: 'coverage', benchmark: benchmark === id ? undefined : id }} aria-current={benchmark === id || undefined} className="bar-name">
                {title}
              </Link>
              {bar(n, dataset.case_count)}
              <span className="figure">{count(n)}</span>
            </li>
          ))}
        </ul>
      </Section>
      <Section title={t('groups', { benchmark: dataset.benchmarks.find(({ id }) => id === benchmark)?.title ?? t('allBenchmarks') })}>
        <Loaded query={groups} what={t('whatQuestions')}>
          {(found) => (
            <ul className="bars plain-list">
              {Object.entries(found.categories)
                .sort(([, one], [, other]) => other - one)
                .map(([name, n]) => (
                  <li key={name}>
                    <Link from="/datasets/$datasetId" to="/datasets/$datasetId" params={{ datasetId: dataset.id }} search={{ category: name, benchmark }} className="bar-name">
                      {name}
                    </Link>
                    {bar(n, found.total)}
                    <span className="figure">{count(n)}</span>
                  </li>
                ))}
            </ul>
          )}
        </Loaded>
      </Section>
    </div>
  )
}

function About({ dataset }: { dataset: DatasetDetail }) {
  const t = useTexts(messages)
  const link = (text: string) => {
    const address = webAddress(text)
    return address ? (
      <a href={address} rel="noreferrer noopener" target="_blank">
        {text}
      </a>
    ) : (
      text
    )
  }
  return (
    <>
      <Section title={t('aboutSources')}>
        {dataset.provenance.sources.map((source) => (
          <details className="fold" key={source.benchmark}>
            <summary>{source.benchmark}</summary>
            <dl className="facts">
              <dt>{t('source')}</dt>
              <dd>{link(source.url)}</dd>
              <dt>{t('revision')}</dt>
              <dd className="mono">{source.revision}</dd>
              <dt>{t('license')}</dt>
              <dd>
                <Value>{source.license_url || null}</Value>
              </dd>
              <dt>{t('access')}</dt>
              <dd>
                <Value>{source.access_note || null}</Value>
              </dd>
              <dt>{t('normalizer')}</dt>
              <dd className="mono">{source.normalizer}</dd>
            </dl>
            <p className="note">{t('files', { n: count(source.files.length) ?? '' })}</p>
          </details>
        ))}
      </Section>
      <Section title={t('identity')}>
        <details className="fold">
          <summary className="mono wrap">{dataset.id.slice(0, 16)}…</summary>
          <dl className="facts">
            {(
              [
                [t('id'), dataset.id],
                ['SHA-256', dataset.sha256],
                [t('seed'), String(dataset.seed)],
                [t('split'), dataset.split],
                [t('selection'), dataset.selection],
                [t('frozenAt'), moment(dataset.created_at)],
              ] as const
            ).map(([label, value]) => (
              <div key={label} className="fact">
                <dt>{label}</dt>
                <dd className="mono">
                  <Value>{value}</Value>
                </dd>
              </div>
            ))}
          </dl>
        </details>
      </Section>
    </>
  )
}
