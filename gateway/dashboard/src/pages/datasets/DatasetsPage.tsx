import { SegmentedControl, Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { catalogQuery, datasetsQuery, runsQuery } from '../../api/queries'
import type { Dataset } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { command } from '../../format/command'
import { count } from '../../format/numbers'
import { common } from '../../i18n/common'
import { Pill } from '../../components/Status'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { friendlyName, groupOf } from './names'
import { PreparePanel } from './PreparePanel'
import type { DatasetsSearch } from './search'

const PAGE = 12
const GROUPS = ['smoke', 'quick', 'standard', 'custom'] as const

/** The library of frozen datasets, and the panel that adds to it. */
export function DatasetsPage() {
  const t = useTexts(messages)
  const datasets = useQuery(datasetsQuery)
  return (
    <Page title={t('title')} lead={t('lead')}>
      <PreparePanel />
      <Section title={t('library')} actions={<CopyCommand text={command('dataset', 'list')} />}>
        <Loaded query={datasets} what={t('what')}>
          {(page) => <Library datasets={page.datasets} />}
        </Loaded>
      </Section>
    </Page>
  )
}

function useTitles(): Record<string, string> {
  const catalog = useQuery(catalogQuery)
  return Object.fromEntries((catalog.data?.benchmarks ?? []).map(({ id, title }) => [id, title]))
}

function Library({ datasets }: { datasets: Dataset[] }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const search = useSearch({ from: '/datasets' })
  const navigate = useNavigate({ from: '/datasets' })
  const titles = useTitles()
  const change = (part: DatasetsSearch) => void navigate({ search: (old) => ({ ...old, page: undefined, ...part }), replace: true })
  if (datasets.length === 0) {
    return (
      <Empty title={t('none')}>
        <p>{t('noneText')}</p>
      </Empty>
    )
  }
  const needle = (search.q ?? '').toLowerCase()
  const fitting = datasets.filter(
    (dataset) =>
      (!search.profile || groupOf(dataset) === search.profile) &&
      (!search.benchmark || dataset.benchmarks.includes(search.benchmark)) &&
      (needle === '' || [dataset.name, friendlyName(dataset, titles), dataset.id, ...dataset.benchmarks].some((text) => text.toLowerCase().includes(needle))),
  )
  const page = search.page ?? 1
  const shown = fitting.slice((page - 1) * PAGE, page * PAGE)
  const names = [...new Set(datasets.flatMap((dataset) => dataset.benchmarks))].sort()
  return (
    <>
      <search className="filters">
        <TextInput label={t('search')} placeholder={t('searchHint')} defaultValue={search.q ?? ''} onChange={(event) => change({ q: event.currentTarget.value || undefined })} />
        <Select label={t('benchmark')} placeholder={t('all')} clearable data={names.map((id) => ({ value: id, label: titles[id] ?? id }))} value={search.benchmark ?? null} onChange={(value) => change({ benchmark: value ?? undefined })} />
        <SegmentedControl
          aria-label={t('size')}
          value={search.profile ?? 'all'}
          onChange={(value) => change({ profile: value === 'all' ? undefined : (value as DatasetsSearch['profile']) })}
          data={[
            { value: 'all', label: `${t('all')} ${datasets.length}` },
            ...GROUPS.map((group) => ({
              value: group,
              label: `${group === 'custom' ? t('custom') : words(`profile_${group}`)} ${datasets.filter((dataset) => groupOf(dataset) === group).length}`,
            })),
          ]}
        />
      </search>
      {shown.length === 0 ? (
        <Empty title={t('noMatch')} />
      ) : (
        <ul className="cards">
          {shown.map((dataset) => (
            <Card key={dataset.id} dataset={dataset} titles={titles} />
          ))}
        </ul>
      )}
      {fitting.length > PAGE && (
        <nav className="pager" aria-label={t('library')}>
          <span className="note">{t('page', { from: (page - 1) * PAGE + 1, to: Math.min(page * PAGE, fitting.length), total: fitting.length })}</span>
          {page > 1 && (
            <Link from="/datasets" to="/datasets" search={(old) => ({ ...old, page: page > 2 ? page - 1 : undefined })} className="button-link">
              {words('previous')}
            </Link>
          )}
          {page * PAGE < fitting.length && (
            <Link from="/datasets" to="/datasets" search={(old) => ({ ...old, page: page + 1 })} className="button-link">
              {words('next')}
            </Link>
          )}
        </nav>
      )}
    </>
  )
}

function Card({ dataset, titles }: { dataset: Dataset; titles: Record<string, string> }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const runs = useQuery(runsQuery({ limit: 500 }))
  const used = runs.data?.runs.filter((run) => run.manifest.dataset?.sha256 === dataset.sha256).length
  const group = groupOf(dataset)
  return (
    <li className="card">
      <div className="section-head">
        <Pill tone={dataset.split === 'holdout' ? 'warn' : 'active'}>{dataset.split === 'holdout' ? t('holdout') : group === 'custom' ? t('custom') : words(`profile_${group}`)}</Pill>
        <span className="note">{used === undefined ? t('usedUnknown') : t('usedBy', { n: count(used) ?? '' })}</span>
      </div>
      <Link to="/datasets/$datasetId" params={{ datasetId: dataset.id }} className="row-link">
        {friendlyName(dataset, titles)}
      </Link>
      <p className="note wrap">
        {dataset.benchmarks
          .slice(0, 3)
          .map((id) => titles[id] ?? id)
          .join(', ')}
        {dataset.benchmarks.length > 3 && ` ${t('more', { n: dataset.benchmarks.length - 3 })}`}
      </p>
      <p className="note">
        {t('questions', { n: count(dataset.case_count) ?? '' })} · {t('benchmarks', { n: dataset.benchmarks.length })}
      </p>
      <Link to="/create" search={{ dataset: dataset.id }} className="button-link self-start">
        {t('evaluate')}
      </Link>
    </li>
  )
}
