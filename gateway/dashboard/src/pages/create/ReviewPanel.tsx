import { Alert, Button } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import { stringifyExact } from '../../api/exactJson'
import type { Preparation, Run } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { JsonBlock } from '../../components/JsonBlock'
import { Section, Tile, Tiles } from '../../components/Page'
import { StatusPill } from '../../components/Status'
import { Value } from '../../components/Value'
import { commandWith } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { StartError } from '../../submissions/Unsettled'
import { JobPhase } from '../datasets/PreparePanel'
import { messages } from './messages'
import type { RunSubmission } from './submission'
import type { Reviewed } from './useReview'
import { submissionOf } from './useStart'

interface Props {
  review: UseMutationResult<Reviewed, Error, never> | { data: Reviewed | undefined; error: Error | null; isPending: boolean }
  job: Preparation | null
  /** What the content is called now: a review holds for one. */
  mark: string
  actor: string
  start: UseMutationResult<Run, Error, RunSubmission>
}

/** What the plan will ask, cost and take; and the button that starts it. */
export function ReviewPanel({ review, job, mark, actor, start }: Props) {
  const t = useTexts(messages)
  const problem = useProblem()
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
          <p className="plain">{problem(review.error)}</p>
        </Alert>
      )}
      {review.data && !review.isPending && <Reviewing reviewed={review.data} current={review.data.mark === mark} actor={actor} start={start} />}
    </>
  )
}

const GAPS = ['NO_PRICES', 'AGENT_PROMPT_UNBOUNDED', 'JUDGE_NOT_NAMED', 'GRADER_UNKNOWN'] as const

function gapText(reason: string): `gap_${(typeof GAPS)[number]}` | 'gap_other' {
  const known = GAPS.find((name) => name === reason)
  return known ? `gap_${known}` : 'gap_other'
}

function Reviewing({ reviewed, current, actor, start }: { reviewed: Reviewed; current: boolean; actor: string; start: Props['start'] }) {
  const t = useTexts(messages)
  const session = useSession()
  const { plan, estimate, targetCount, budget, holdout, mode } = reviewed
  const worst = plan.worst_case_cost_usd
  const over = budget !== null && worst !== null && worst > budget
  const gaps = plan.worst_case_gaps.map((gap) => t(gapText(gap.reason), { target: gap.target_id, benchmark: gap.benchmark }))
  const times = estimate.earliestS !== null && estimate.latestS !== null
  return (
    <Section title={current ? t('planReady') : t('planChanged')} note={t('noRequests')}>
      <Tiles>
        <Tile
          label={t('planned')}
          note={t('plannedNote', { cases: count(plan.case_count) ?? '', targets: targetCount, calls: count(plan.most_calls) ?? '' })}
        >
          {count(plan.total)}
        </Tile>
        <Tile label={t('expected')} note={estimate.costUsd === null ? undefined : t('expectedNote')}>
          <Value why={t('expectedWhy')}>{usd(estimate.costUsd)}</Value>
        </Tile>
        <Tile label={t('worst')} note={worst === null ? t('worstUnknown') : over ? t('overBudget', { budget: usd(budget) ?? '' }) : t('worstNote')}>
          <Value why={gaps.join(' ')}>{usd(worst)}</Value>
        </Tile>
        <Tile label={t('time')} note={times ? t('expectedNote') : undefined}>
          <Value why={t('timeWhy')}>{times ? t('timeRange', { from: duration(estimate.earliestS) ?? '', to: duration(estimate.latestS) ?? '' }) : null}</Value>
        </Tile>
      </Tiles>
      {gaps.length > 0 && (
        <ul className="note" aria-label={t('worst')}>
          {gaps.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
          {budget !== null && <li>{t('budgetHolds', { budget: usd(budget) ?? '' })}</li>}
        </ul>
      )}
      <dl className="facts">
        <dt>{t('holdout')}</dt>
        <dd>{holdout === null ? <Value why={t('holdoutWhy')}>{null}</Value> : holdout ? t('holdoutYes') : t('holdoutNo')}</dd>
        <dt>{t('prerequisites')}</dt>
        <dd>{t('prerequisitesNone')}</dd>
        <dt>{t('planSha')}</dt>
        <dd className="mono">{plan.plan_sha256}</dd>
      </dl>
      <JsonBlock title={t('frozen')} value={plan.manifest} />
      <StartError error={start.error} />
      <div className="actions">
        <Button disabled={!current || !session.can_write} loading={start.isPending} onClick={() => start.mutate(submissionOf(actor, plan.manifest as Record<string, unknown>))}>
          {mode === 'preview' ? t('startPreview') : t('start')}
        </Button>
        <CopyCommand text={commandWith(stringifyExact(plan.manifest, 2), mode === 'preview' ? 'preview' : 'run', '--manifest', '-')} />
      </div>
    </Section>
  )
}
