import { Alert, Button, Checkbox, Radio } from '@mantine/core'
import { useMutation, type UseMutationResult } from '@tanstack/react-query'
import { useState } from 'react'
import { LONG_DEADLINE_MS, post } from '../../../api/client'
import { ApiError } from '../../../api/errors'
import { stringifyExact } from '../../../api/exactJson'
import type { Run } from '../../../api/types'
import { useSession } from '../../../app/session'
import { CopyCommand } from '../../../components/CopyCommand'
import { Empty } from '../../../components/Notices'
import { Tile, Tiles } from '../../../components/Page'
import { Value } from '../../../components/Value'
import { command, commandWith } from '../../../format/command'
import { count, usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { useProblem } from '../../../i18n/problems'
import { StartError } from '../../../submissions/Unsettled'
import { EligibleCells, ExcludedCells, keyOf } from './Cells'
import { messages } from './messages'
import { recoveryOf, type Mode, type Plan, type RecoverySubmission } from './submission'

type Start = UseMutationResult<unknown, Error, RecoverySubmission>

/** From a scope to a reviewed plan. Making a plan sends nothing. */
export function Planning({ run, actor, start }: { run: Run; actor: string; start: Start }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const session = useSession()
  // Of a completed run every cell was sent.
  const [mode, setMode] = useState<Mode>(run.status === 'completed' ? 'failed' : 'undispatched')
  const plan = useMutation({
    mutationFn: (wanted: Mode) => post('/runs/{run_id}/recover-plan', { path: { run_id: run.id }, body: { mode: wanted }, deadlineMs: LONG_DEADLINE_MS }),
    onMutate: () => start.reset(),
  })
  const outdated = start.error instanceof ApiError && start.error.reason === 'RECOVERY_PLAN_REQUIRED'
  const choose = (value: string) => {
    setMode(value as Mode)
    plan.reset()
    start.reset()
  }
  return (
    <>
      <Radio.Group label={t('scope')} value={mode} onChange={choose}>
        <div className="radio-cards">
          {(['undispatched', 'failed'] as const).map((value) => (
            <Radio.Card key={value} value={value} className="radio-card" aria-label={t(value)}>
              <span className="radio-title">
                <Radio.Indicator />
                {t(value)}
              </span>
              <span className="note">{t(`${value}Text`)}</span>
            </Radio.Card>
          ))}
        </div>
      </Radio.Group>
      <div className="actions">
        <Button loading={plan.isPending} disabled={!session.can_write || start.isPending} onClick={() => plan.mutate(mode)}>
          {t('review')}
        </Button>
        <CopyCommand text={command('recover-plan', run.id, '--mode', mode, '--output', 'recovery-plan.json')} />
        {!session.can_write && <span className="note">{t('needRight')}</span>}
      </div>
      {plan.error && (
        <Alert color="red" variant="light" role="alert" title={t('refused')}>
          <p className="plain">{problem(plan.error)}</p>
        </Alert>
      )}
      {outdated ? (
        <Alert color="orange" variant="light" role="alert">
          {t('changed')}
        </Alert>
      ) : (
        plan.data && <Reviewed key={plan.data.plan_sha256} plan={plan.data} actor={actor} start={start} />
      )}
    </>
  )
}

function Reviewed({ plan, actor, start }: { plan: Plan; actor: string; start: Start }) {
  const t = useTexts(messages)
  const session = useSession()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set(plan.eligible_cells.map(keyOf)))
  const [acknowledged, setAcknowledged] = useState(false)
  const cells = plan.eligible_cells.filter((cell) => chosen.has(keyOf(cell)))
  const must = plan.requires_new_attempt_acknowledgment
  const ready = cells.length > 0 && (acknowledged || !must)
  const key = `recover-${plan.plan_sha256.slice(0, 12)}-${cells.length}`
  const shell = commandWith(stringifyExact({ ...plan, excluded: [], selected_cells: cells }), 'recover', plan.parent_run_id, '--plan', '-', '--idempotency-key', key, ...(must ? ['--acknowledge-new-attempt'] : []))
  return (
    <>
      <PlanTiles plan={plan} />
      <p className="note">{plan.scope}</p>
      {plan.eligible_cells.length === 0 ? <Empty title={t('noneEligible')} /> : <EligibleCells cells={plan.eligible_cells} chosen={chosen} onChange={setChosen} />}
      {plan.excluded.length > 0 && <ExcludedCells cells={plan.excluded} reasons={plan.counts?.excluded_by_reason ?? {}} />}
      {plan.eligible_cells.length > 0 && (
        <>
          {must && <Checkbox label={t('acknowledge')} checked={acknowledged} onChange={(event) => setAcknowledged(event.currentTarget.checked)} />}
          <StartError error={start.error} />
          <div className="actions">
            <Button disabled={!ready || !session.can_write} loading={start.isPending} onClick={() => start.mutate(recoveryOf(actor, plan, cells, acknowledged && must))}>
              {t('create', { n: cells.length })}
            </Button>
            <CopyCommand text={shell} />
          </div>
        </>
      )}
    </>
  )
}

function PlanTiles({ plan }: { plan: Plan }) {
  const t = useTexts(messages)
  const { counts, parent } = plan
  const total = t('ofTotal', { total: count(counts?.total) ?? '' })
  const progress = parent?.progress
  const open = parent && !parent.spend_complete ? t('spendOpen', { upper: usd(parent.spend_upper_usd) ?? '' }) : undefined
  return (
    <Tiles>
      <Tile label={t('eligible')} note={total}>
        <Value>{count(counts?.eligible)}</Value>
      </Tile>
      <Tile label={t('excluded')} note={total}>
        <Value>{count(counts?.excluded)}</Value>
      </Tile>
      {progress && (
        <Tile label={t('parent')} note={t('parentNote', { ...progress })}>
          {count(progress.total)}
        </Tile>
      )}
      <Tile label={t('spend')} note={open}>
        <Value>{usd(parent?.known_spend_usd)}</Value>
      </Tile>
      <Tile label={t('budget')}>
        <Value why={t('noBudget')}>{usd(plan.new_attempt_budget_usd)}</Value>
      </Tile>
    </Tiles>
  )
}
