import { Alert, Button, Modal } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { post } from '../../api/client'
import { messageOf } from '../../api/errors'
import { reportQuery, runQuery } from '../../api/queries'
import { isActive, type Run } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyButton } from '../../components/CopyButton'
import { Loaded } from '../../components/Notices'
import { Page } from '../../components/Page'
import { StatusPill, TargetChip } from '../../components/Status'
import { command } from '../../format/command'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { ActiveCalls } from './ActiveCalls'
import { RunTiles } from './RunTiles'
import { messages } from './messages'
import { useRunWatch } from './useRunWatch'

export const SECTIONS = ['results', 'questions', 'calls', 'evidence'] as const

/** One run: its head, which is the same for all sections, and the section chosen. */
export function RunPage() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const active = run.data !== undefined && isActive(run.data.status)
  const watched = useRunWatch(runId, active)
  return (
    <Loaded query={run} what={t('what')}>
      {(found) => (
        <Page title={found.manifest.name || found.id} lead={<Lead run={found} />} actions={<Actions run={found} />}>
          <Trouble run={found} />
          <RunTiles run={found} watched={watched} />
          {active && <ActiveCalls runId={runId} />}
          <nav className="tabs" aria-label={t('sections')}>
            {SECTIONS.map((section) => (
              <Link key={section} to={`/runs/$runId/${section}`} params={{ runId }} className="tab" activeProps={{ 'aria-current': 'page' }}>
                {t(section)}
              </Link>
            ))}
          </nav>
          <Outlet />
        </Page>
      )}
    </Loaded>
  )
}

function Lead({ run }: { run: Run }) {
  const words = useTexts(common)
  const { mode, profile, targets } = run.manifest
  return (
    <span className="lead-line">
      <StatusPill status={run.status} />
      <span>
        {words(`mode_${mode}` as 'mode_live')} · {words(`profile_${profile}` as 'profile_quick')}
      </span>
      <span className="chips">
        {targets.map((target) => (
          <TargetChip key={target.id} model={target.model} kind={target.kind} />
        ))}
      </span>
    </span>
  )
}

function Trouble({ run }: { run: Run }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const report = useQuery(reportQuery(run.id, isActive(run.status) ? null : run.updated_at))
  const failed = run.progress?.failed ?? 0
  if (isActive(run.status) || (run.status === 'completed' && failed === 0)) return null
  const first = report.data?.failure
  return (
    <Alert color="orange" variant="light" role="note" className="notice">
      {run.status !== 'completed' && (
        <p>{t('ended', { status: words(`status_${run.status}` as 'status_failed'), reason: run.reason ?? '—', error: run.error ?? '' })}</p>
      )}
      {failed > 0 && <p>{t('notComplete', { failed, total: run.progress?.total ?? 0 })}</p>}
      {first && <p>{t('failure', { reason: first.reason, case: first.case_id, target: first.target_id })}</p>}
    </Alert>
  )
}

function Actions({ run }: { run: Run }) {
  const words = useTexts(common)
  const session = useSession()
  return (
    <>
      <CopyButton text={command('report', run.id)} label={words('copyCommand')} />
      <CopyButton text={location.href} label={words('copyLink')} />
      {isActive(run.status) && session.can_write && <CancelRun run={run} />}
    </>
  )
}

function CancelRun({ run }: { run: Run }) {
  const t = useTexts(messages)
  const queries = useQueryClient()
  const [asking, setAsking] = useState(false)
  const cancel = useMutation({
    mutationFn: () => post('/runs/{run_id}/cancel', { path: { run_id: run.id }, body: {} }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ['run', run.id] }),
    onSuccess: () => setAsking(false),
  })
  return (
    <>
      <Button size="compact-sm" color="red" variant="light" onClick={() => setAsking(true)} disabled={cancel.isSuccess}>
        {cancel.isSuccess ? t('cancelling') : t('cancelRun')}
      </Button>
      <Modal opened={asking} onClose={() => setAsking(false)} title={t('cancelSure')}>
        <div className="stack-gap">
          <p>{t('cancelText')}</p>
          {cancel.error && (
            <Alert color="red" role="alert">
              {messageOf(cancel.error)}
            </Alert>
          )}
          <div className="actions end">
            <Button variant="default" onClick={() => setAsking(false)}>
              {t('keep')}
            </Button>
            <Button color="red" loading={cancel.isPending} onClick={() => cancel.mutate()}>
              {t('cancelYes')}
            </Button>
          </div>
        </div>
      </Modal>
    </>
  )
}
