import { Alert, Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { get } from '../../api/client'
import { catalogQuery, datasetsQuery, targetsQuery } from '../../api/queries'
import type { Catalog, Dataset, Target } from '../../api/types'
import { useSession } from '../../app/session'
import { LoadedPage, LoadingPage } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { useTexts, type Translate } from '../../i18n/messages'
import { CandidatePage } from './CandidatePage'
import { ExperimentFields } from './ExperimentFields'
import { fittingRoles, partOf } from './experimentPart'
import { EMPTY, fingerprint, problemsOf, type Form, type Problem } from './form'
import { KindChoice } from './KindChoice'
import { LimitsStep } from './LimitsStep'
import { messages } from './messages'
import { Reconcile } from './Reconcile'
import { ReviewPanel } from './ReviewPanel'
import { ScopeStep } from './ScopeStep'
import { TargetsStep } from './TargetsStep'
import { useReview } from './useReview'
import { useStart } from './useStart'
import type { CreateSearch } from './search'

/** A new evaluation or route preview, from its scope to its start. */
export function CreatePage() {
  const t = useTexts(messages)
  const search = useSearch({ from: '/create' })
  const session = useSession()
  const actor = session.actor ?? ''
  const { start, open } = useStart(actor)
  const catalog = useQuery(catalogQuery)
  const targets = useQuery(targetsQuery)
  const datasets = useQuery(datasetsQuery)
  const title = search.mode === 'preview' ? t('titlePreview') : t('title')
  if (open) return <Reconcile submission={open} start={start} />
  return (
    <LoadedPage query={catalog} what={t('whatCatalog')} title={title}>
      {(found) => (
        <LoadedPage query={targets} what={t('whatTargets')} title={title}>
          {({ targets: registered }) =>
            search.baseline ? (
              <CandidatePage key={search.baseline} search={search} targets={registered} datasets={datasets.data?.datasets ?? []} actor={actor} start={start} />
            ) : search.dataset && !datasets.data && !datasets.error ? (
              <LoadingPage />
            ) : (
              <Composer key={search.mode ?? 'live'} search={search} catalog={found} targets={registered} datasets={datasets.data?.datasets ?? []} actor={actor} start={start} />
            )
          }
        </LoadedPage>
      )}
    </LoadedPage>
  )
}

function kindsOf(form: Form, targets: Target[]): ReadonlySet<string> {
  return new Set(targets.filter((target) => form.targets.includes(target.id)).map((target) => target.kind ?? ''))
}

interface ComposerProps {
  search: CreateSearch
  catalog: Catalog
  targets: Target[]
  datasets: Dataset[]
  actor: string
  start: ReturnType<typeof useStart>['start']
}

function initial(search: CreateSearch, targets: Target[], datasets: Dataset[]): Form {
  const dataset = datasets.find((item) => item.id === search.dataset)
  const profile = (dataset?.profile as Form['profile'] | undefined) ?? search.profile ?? EMPTY.profile
  const wanted = targets.filter((target) => search.target?.includes(target.id) || search.target?.includes(target.model))
  return { ...EMPTY, mode: search.mode ?? 'live', profile, dataset: dataset?.id ?? null, experiment: partOf(search), targets: wanted.map((target) => target.id) }
}

function Composer({ search, catalog, targets, datasets, actor, start }: ComposerProps) {
  const t = useTexts(messages)
  const session = useSession()
  const [form, setForm] = useState(() => initial(search, targets, datasets))
  const [problems, setProblems] = useState<Problem[]>([])
  const { review, job } = useReview()
  const selection = useQuery({
    queryKey: ['selection', form.profile],
    queryFn: ({ signal }) => get('/datasets/selection', { query: { profile: form.profile }, signal }),
    // With a dataset chosen by hand the resolution is not asked for, and a late answer of it is not looked at.
    enabled: form.dataset === null,
  })
  const unusable = useMemo(() => {
    if (form.dataset !== null || !selection.data) return []
    return form.benchmarks.filter((id) => {
      const resolved = selection.data.benchmarks.find((item) => item.id === id)
      const known = catalog.benchmarks.find((item) => item.id === id)
      return !resolved?.eligible && (!known?.available || resolved?.reason === 'source_conflict')
    })
  }, [form.dataset, form.benchmarks, selection.data, catalog])
  const change = (part: Partial<Form>) => setForm((old) => ({ ...old, ...part }))
  const busy = review.isPending || start.isPending
  const run = () => {
    const found = problemsOf(form, targets, unusable)
    setProblems(found)
    if (found.length === 0) review.mutate({ form, targets, datasets })
  }
  const preview = form.mode === 'preview'
  return (
    <Page title={preview ? t('titlePreview') : t('title')} lead={preview ? t('leadPreview') : t('lead')}>
      <fieldset className="bare stack-gap-lg" disabled={busy}>
        <Section title={t('kind')}>
          <div className="filters">
            <KindChoice
              value={form.mode}
              disabled={busy}
              onChange={(mode) => change({ mode, targets: mode === 'preview' ? form.targets.filter((id) => targets.find((target) => target.id === id)?.kind === 'mom') : form.targets })}
            />
            <TextInput label={t('name')} value={form.name} maxLength={160} onChange={(event) => change({ name: event.currentTarget.value })} className="filter-text" />
            <ExperimentFields part={form.experiment} roles={fittingRoles(form.mode, form.profile, kindsOf(form, targets))} onChange={(experiment) => change({ experiment })} />
          </div>
        </Section>
        <ScopeStep form={form} change={change} catalog={catalog} datasets={datasets} selection={selection} />
        <TargetsStep form={form} change={change} targets={targets} />
        <LimitsStep form={form} change={change} targets={targets} />
      </fieldset>
      {problems.length > 0 && (
        <Alert color="red" variant="light" role="alert" title={t('problems')}>
          <ul className="sentences">
            {problems.map((problem, index) => (
              <li key={index}>{sentence(t, problem)}</li>
            ))}
          </ul>
        </Alert>
      )}
      <div className="actions">
        <Button onClick={run} loading={review.isPending} disabled={!session.can_write || start.isPending}>
          {t('review')}
        </Button>
        {!session.can_write && <span className="note">{t('needRight')}</span>}
      </div>
      <ReviewPanel review={review} job={job} mark={fingerprint(form)} actor={actor} start={start} />
    </Page>
  )
}

function sentence(t: Translate<typeof messages.en>, problem: Problem): string {
  const values = { ...problem.values }
  // A limit is called by its label.
  if (problem.key === 'badLimit') values.name = t(values.name as 'max_cost_usd')
  return t(problem.key, values)
}
