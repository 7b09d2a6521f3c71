import { Alert, Button, Checkbox, Radio, Select } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Benchmark, Catalog, Dataset, DatasetSelection } from '../../api/types'
import { Section } from '../../components/Page'
import { count } from '../../format/numbers'
import { common } from '../../i18n/common'
import { useTexts, type Translate } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { friendlyName } from '../datasets/names'
import { countIn, type Form, type Profile } from './form'
import { messages } from './messages'

interface Props {
  form: Form
  change: (part: Partial<Form>) => void
  catalog: Catalog
  datasets: Dataset[]
  selection: UseQueryResult<DatasetSelection>
}

const PURPOSES = { smoke: 'purpose_smoke', quick: 'purpose_quick', standard: 'purpose_standard' } as const

/** What is asked: a size and benchmarks, or one frozen dataset. */
export function ScopeStep({ form, change, catalog, datasets, selection }: Props) {
  const t = useTexts(messages)
  const problem = useProblem()
  const words = useTexts(common)
  return (
    <Section title={t('scope')}>
      <Radio.Group label={t('size')} value={form.profile} onChange={(value) => change({ profile: value as Profile, dataset: null })}>
        <div className="radio-cards">
          {catalog.profiles.map((profile) => (
            <Radio.Card key={profile.id} value={profile.id} className="radio-card" aria-label={words(`profile_${profile.id}` as 'profile_quick')}>
              <span className="radio-title">
                <Radio.Indicator />
                {words(`profile_${profile.id}` as 'profile_quick')}
                <span className="soft">{t('cases', { n: count(profile.total) ?? '' })}</span>
              </span>
              <span className="note">{profile.id in PURPOSES ? t(PURPOSES[profile.id as Profile]) : profile.description}</span>
            </Radio.Card>
          ))}
        </div>
      </Radio.Group>
      {form.dataset === null ? (
        <>
          {selection.error && (
            <Alert color="red" variant="light" role="alert">
              <div className="notice-row">
                <span>{words('unavailable', { what: t('whatSelection'), message: problem(selection.error) })}</span>
                <Button size="compact-sm" variant="default" onClick={() => void selection.refetch()}>
                  {t('retrySelection')}
                </Button>
              </div>
            </Alert>
          )}
          <Benchmarks form={form} change={change} catalog={catalog} selection={selection.error ? undefined : selection.data} />
          {datasets.length > 0 && (
            <Button variant="default" className="self-start" onClick={() => change({ dataset: datasets[0]?.id ?? null, profile: (datasets[0]?.profile as Profile | undefined) ?? form.profile })}>
              {t('useDataset')}
            </Button>
          )}
        </>
      ) : (
        <DatasetChoice form={form} change={change} catalog={catalog} datasets={datasets} />
      )}
    </Section>
  )
}

function Benchmarks({ form, change, catalog, selection }: { form: Form; change: Props['change']; catalog: Catalog; selection: DatasetSelection | undefined }) {
  const t = useTexts(messages)
  const usable = catalog.benchmarks.filter((item) => !reasonAgainst(t, item, selection))
  return (
    <Checkbox.Group label={t('included')} value={form.benchmarks} onChange={(benchmarks) => change({ benchmarks: catalog.benchmarks.map(({ id }) => id).filter((id) => benchmarks.includes(id)) })}>
      <div className="actions gap-y">
        <Button size="compact-sm" variant="default" onClick={() => change({ benchmarks: usable.map(({ id }) => id) })}>
          {t('selectAll')}
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => change({ benchmarks: [] })} disabled={form.benchmarks.length === 0}>
          {t('clearAll')}
        </Button>
      </div>
      <ul className="check-list">
        {catalog.benchmarks.map((item) => {
          const against = reasonAgainst(t, item, selection)
          const resolved = selection?.benchmarks.find((found) => found.id === item.id)
          const n = count(resolved?.eligible ? resolved.case_count : countIn(catalog, item.id, form.profile)) ?? ''
          return (
            <li key={item.id}>
              <Checkbox
                value={item.id}
                label={item.title}
                // What became unusable stays ticked and says why; it can only be unticked.
                disabled={against !== null && !form.benchmarks.includes(item.id)}
                description={against ?? (resolved?.eligible ? t('ready', { n }) : t('willPrepare', { n }))}
              />
            </li>
          )
        })}
      </ul>
    </Checkbox.Group>
  )
}

/** Why a benchmark cannot be used; `null` when it can. Without an answer of the service nothing is claimed. */
function reasonAgainst(t: Translate<typeof messages.en>, item: Benchmark, selection: DatasetSelection | undefined): string | null {
  const resolved = selection?.benchmarks.find((found) => found.id === item.id)
  if (resolved?.eligible) return null
  if (resolved?.reason === 'source_conflict') return t('conflict', { reason: resolved.reason })
  return item.available ? null : t('notAvailable')
}

function DatasetChoice({ form, change, catalog, datasets }: { form: Form; change: Props['change']; catalog: Catalog; datasets: Dataset[] }) {
  const t = useTexts(messages)
  const titles = Object.fromEntries(catalog.benchmarks.map(({ id, title }) => [id, title]))
  return (
    <div className="filters">
      <Select
        label={t('dataset')}
        placeholder={t('datasetHint')}
        searchable
        allowDeselect={false}
        data={datasets.map((dataset) => ({ value: dataset.id, label: `${friendlyName(dataset, titles)} · ${dataset.profile} · ${count(dataset.case_count)} · ${dataset.id.slice(0, 8)}` }))}
        value={form.dataset}
        onChange={(id) => {
          const found = datasets.find((dataset) => dataset.id === id)
          if (found) change({ dataset: found.id, profile: found.profile as Profile })
        }}
        className="filter-wide"
      />
      <Button variant="default" onClick={() => change({ dataset: null })}>
        {t('useBenchmarks')}
      </Button>
    </div>
  )
}
