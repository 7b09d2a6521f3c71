import { Alert, Button } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import { messageOf } from '../../api/errors'
import { stringifyExact } from '../../api/exactJson'
import type { Preparation, Run } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyButton } from '../../components/CopyButton'
import { JsonBlock } from '../../components/JsonBlock'
import { Section, Tile, Tiles } from '../../components/Page'
import { StatusPill } from '../../components/Status'
import { Value } from '../../components/Value'
import { commandWith } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { JobPhase } from '../datasets/PreparePanel'
import type { Form } from './form'
import { messages } from './messages'
import type { Submission } from './submission'
import type { Reviewed } from './useReview'
import { NotKept, submissionOf } from './useStart'

interface Props {
  review: UseMutationResult<Reviewed, Error, never> | { data: Reviewed | undefined; error: Error | null; isPending: boolean }
  job: Preparation | null
  current: boolean
  form: Form
  actor: string
  start: UseMutationResult<Run, Error, Submission>
}

/** What the plan will ask, cost and take; and the button that starts it. */
export function ReviewPanel({ review, job, current, form, actor, start }: Props) {
  const t = useTexts(messages)
  return (
    <>
      {job && review.isPending && (
        <Section title={t('preparing')}>
          <p role="status">
            <StatusPill status={job.status} /> <JobPhase job={job} />
          </p>
          <ul className="plain-list">
            {(job.request?.benchmarks ?? []).map((name, index) => (
              <li key={name}>
                {name}: {index < job.done_count ? t('prep_ready') : job.status === 'failed' ? t('prep_failed') : t('prep_preparing')}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {review.error && !review.isPending && (
        <Alert color="red" variant="light" role="alert" title={t('planRefused')}>
          <p className="plain">{messageOf(review.error)}</p>
        </Alert>
      )}
      {review.data && !review.isPending && <Reviewing reviewed={review.data} current={current} form={form} actor={actor} start={start} />}
    </>
  )
}

function Reviewing({ reviewed, current, form, actor, start }: { reviewed: Reviewed; current: boolean; form: Form; actor: string; start: Props['start'] }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const session = useSession()
  const { plan, dataset, estimate, targetCount } = reviewed
  const budget = form.costPolicy === 'require_priced' ? form.limits.max_cost_usd : null
  const worst = plan.worst_case_cost_usd
  const over = budget !== null && worst !== null && worst > budget
  const times = estimate.earliestS !== null && estimate.latestS !== null
  return (
    <Section title={current ? t('planReady') : t('planChanged')} note={t('noRequests')}>
      <Tiles>
        <Tile label={t('planned')} note={t('plannedNote', { cases: count(plan.case_count) ?? '', targets: targetCount })}>
          {count(plan.total)}
        </Tile>
        <Tile label={t('expected')} note={estimate.costUsd === null ? undefined : t('expectedNote')}>
          <Value why={t('expectedWhy')}>{usd(estimate.costUsd)}</Value>
        </Tile>
        <Tile label={t('worst')} note={over ? t('overBudget', { budget: usd(budget) ?? '' }) : undefined}>
          <Value why={t('worstWhy')}>{usd(worst)}</Value>
        </Tile>
        <Tile label={t('time')} note={times ? t('expectedNote') : undefined}>
          <Value why={t('timeWhy')}>{times ? t('timeRange', { from: duration(estimate.earliestS) ?? '', to: duration(estimate.latestS) ?? '' }) : null}</Value>
        </Tile>
      </Tiles>
      <dl className="facts">
        <dt>{t('holdout')}</dt>
        <dd>{dataset.split === 'holdout' ? t('holdoutYes') : t('holdoutNo')}</dd>
        <dt>{t('prerequisites')}</dt>
        <dd>{t('prerequisitesNone')}</dd>
        <dt>{t('planSha')}</dt>
        <dd className="mono">{plan.plan_sha256}</dd>
      </dl>
      <JsonBlock title={t('frozen')} value={plan.manifest} />
      {start.error && (
        <Alert color="red" variant="light" role="alert" title={t('startFailed')}>
          <p className="plain">{start.error instanceof NotKept ? t('storageFailed') : messageOf(start.error)}</p>
        </Alert>
      )}
      <div className="actions">
        <Button disabled={!current || !session.can_write} loading={start.isPending} onClick={() => start.mutate(submissionOf(actor, plan.manifest as Record<string, unknown>))}>
          {form.mode === 'preview' ? t('startPreview') : t('start')}
        </Button>
        <CopyButton text={commandWith(stringifyExact(plan.manifest, 2), 'run', '--manifest', '-')} label={words('copyCommand')} />
      </div>
    </Section>
  )
}
