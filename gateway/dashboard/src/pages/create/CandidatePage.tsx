import { visible } from '../../format/visible'
import { Alert, Button, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { LONG_DEADLINE_MS, post, type Body } from '../../api/client'
import { runQuery } from '../../api/queries'
import type { Dataset, Run, Target } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { JsonBlock } from '../../components/JsonBlock'
import { LoadedPage } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { StatusPill, TargetChip } from '../../components/Status'
import { command } from '../../format/command'
import { count } from '../../format/numbers'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { againstBaseline } from './baseline'
import { ExperimentFields } from './ExperimentFields'
import { fittingRoles, partInManifest, partOf, type ExperimentPart } from './experimentPart'
import { KindChoice } from './KindChoice'
import { messages } from './messages'
import { ReviewPanel } from './ReviewPanel'
import type { CreateSearch } from './search'
import { TargetsStep } from './TargetsStep'
import { estimated, type Reviewed } from './useReview'
import type { useStart } from './useStart'

interface Props {
  search: CreateSearch
  targets: Target[]
  datasets: Dataset[]
  actor: string
  start: ReturnType<typeof useStart>['start']
}

interface Candidate {
  name: string
  mode: 'live' | 'preview'
  targets: string[]
  experiment: ExperimentPart | null
}

/** A plan that asks routers exactly what a baseline asked: only its name and its routers can be chosen. */
export function CandidatePage(props: Props) {
  const t = useTexts(messages)
  const baseline = useQuery(runQuery(props.search.baseline ?? ''))
  return (
    <LoadedPage query={baseline} what={t('whatBaseline')}>
      {(run) => <Composer {...props} baseline={run} />}
    </LoadedPage>
  )
}

function Composer({ search, targets, datasets, actor, start, baseline }: Props & { baseline: Run }) {
  const t = useTexts(messages)
  const session = useSession()
  const [form, setForm] = useState<Candidate>(() => ({
    name: '',
    mode: search.mode ?? 'live',
    targets: targets.filter((target) => target.kind === 'mom' && search.target?.includes(target.id)).map(({ id }) => id),
    experiment: partOf(search),
  }))
  const change = (part: Partial<Candidate>) => setForm((old) => ({ ...old, ...part }))
  const against = againstBaseline(baseline)
  const review = useReviewCandidate(baseline, datasets)
  const busy = review.isPending || start.isPending
  const line = ['candidate-plan', baseline.id, ...form.targets.flatMap((id) => ['--target', id]), '--mode', form.mode, ...(form.name ? ['--name', form.name] : [])]
  return (
    <Page title={t('titleCandidate')} lead={t('leadCandidate')}>
      <Protocol run={baseline} />
      {against ? (
        <Alert color="orange" variant="light" role="alert">
          {t(against)}
        </Alert>
      ) : (
        <>
          <fieldset className="bare stack-gap-lg" disabled={busy}>
            <Section title={t('kind')}>
              <div className="filters">
                <KindChoice value={form.mode} disabled={busy} onChange={(mode) => change({ mode })} />
                <TextInput label={t('name')} description={t('nameOptional')} value={form.name} maxLength={160} onChange={(event) => change({ name: event.currentTarget.value })} className="filter-text" />
              </div>
              <ExperimentFields part={form.experiment} roles={fittingRoles(form.mode, baseline.manifest.profile ?? '', new Set(['mom']))} onChange={(experiment) => change({ experiment })} />
            </Section>
            <TargetsStep title={t('routers')} form={{ ...form, onlyRouters: true }} change={change} targets={targets} />
          </fieldset>
          <div className="actions">
            <Button onClick={() => review.mutate(form)} loading={review.isPending} disabled={!session.can_write || form.targets.length === 0 || start.isPending}>
              {t('review')}
            </Button>
            <CopyCommand text={command(...line, '--output', 'candidate.json')} />
            {!session.can_write && <span className="note">{t('needRight')}</span>}
            {form.targets.length === 0 && <span className="note">{t('needRouter')}</span>}
          </div>
          <ReviewPanel review={review} job={null} mark={JSON.stringify(form)} actor={actor} start={start} />
        </>
      )}
    </Page>
  )
}

function useReviewCandidate(baseline: Run, datasets: readonly Dataset[]) {
  return useMutation({
    mutationFn: async (form: Candidate): Promise<Reviewed> => {
      const { targets, mode, name, experiment } = form
      const body: Body<'/runs/{run_id}/candidate-plan'> = { target_ids: targets, mode, ...(name.trim() ? { name: name.trim() } : {}), ...partInManifest(experiment) }
      const plan = await post('/runs/{run_id}/candidate-plan', { path: { run_id: baseline.id }, body, deadlineMs: LONG_DEADLINE_MS })
      const { limits, cost_policy: policy, dataset } = baseline.manifest
      const bound = datasets.find((item) => item.sha256 === dataset?.sha256)
      return {
        plan,
        mode,
        budget: policy === 'capability_only' ? null : limits.max_cost_usd,
        holdout: bound ? bound.split === 'holdout' : null,
        estimate: await estimated(mode, targets, plan, limits.concurrency, limits.max_run_seconds),
        targetCount: targets.length,
        mark: JSON.stringify(form),
      }
    },
  })
}

/** What the baseline froze, and the candidate takes over as it is. */
function Protocol({ run }: { run: Run }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const { manifest, progress } = run
  const facts: [string, string][] = [
    [t('size'), words(`profile_${manifest.profile}` as 'profile_quick')],
    [t('plannedCells'), count(progress?.total) ?? ''],
    [t('costPolicy'), t((manifest.cost_policy || 'require_priced') as 'require_priced')],
  ]
  return (
    <Section title={t('protocol')} note={t('protocolNote')}>
      <p className="run-line">
        <Link to="/runs/$runId" params={{ runId: run.id }}>
          {visible(manifest.name || run.id)}
        </Link>{' '}
        <StatusPill status={run.status} />{' '}
        {manifest.targets.map((target) => (
          <TargetChip key={target.id} model={target.model} kind={target.kind} />
        ))}
      </p>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label} className="fact">
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {(progress?.failed ?? 0) > 0 && <p className="note">{t('baselineFailures', { n: count(progress?.failed) ?? '' })}</p>}
      <JsonBlock title={t('protocolSampling')} value={manifest.sampling} />
      <JsonBlock title={t('protocolLimits')} value={manifest.limits} />
    </Section>
  )
}
