import { Fault } from '../../components/Fault'
import { Alert, Button, Modal } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { address, post } from '../../api/client'
import { reportQuery, runQuery } from '../../api/queries'
import { isActive, type Run } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyButton } from '../../components/CopyButton'
import { CopyCommand } from '../../components/CopyCommand'
import { LinkRow } from '../../components/LinkRow'
import { LoadedPage } from '../../components/Notices'
import { PaperLink } from '../../components/PaperLink'
import { Page } from '../../components/Page'
import { StatusPill, TargetChip } from '../../components/Status'
import { command } from '../../format/command'
import { percent } from '../../format/numbers'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { useEnd } from '../../i18n/ends'
import { useProblem } from '../../i18n/problems'
import { againstBaseline } from '../create/baseline'
import { ActiveCalls } from './ActiveCalls'
import { RunTiles } from './RunTiles'
import { messages } from './messages'
import { SECTIONS, type Section } from './sections'
import { useRunWatch } from './useRunWatch'

/** One run: its head, which is the same for all sections, and the section chosen. */
export function RunPage() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const active = run.data !== undefined && isActive(run.data.status)
  const watched = useRunWatch(runId, active)
  return (
    <LoadedPage query={run} what={t('what')}>
      {(found) => (
        <Page title={found.manifest.name || found.id} state={active ? doneOf(found) : undefined} lead={<Lead run={found} />} actions={<Actions run={found} />}>
          <Trouble run={found} />
          <RunTiles run={found} watched={watched} />
          {active && <ActiveCalls runId={runId} />}
          <LinkRow className="tabs" label={t('sections')}>
            {sectionsOf(found).map((section) => (
              <Link key={section} to={`/runs/$runId/${section}`} params={{ runId }} className="tab" activeProps={{ 'aria-current': 'page' }}>
                {t(section)}
              </Link>
            ))}
          </LinkRow>
          <Outlet />
        </Page>
      )}
    </LoadedPage>
  )
}

/** How much of a run has ended, for whoever looks at another tab. */
function doneOf(run: Run): string | undefined {
  const { completed = 0, failed = 0, total = 0 } = run.progress ?? {}
  return percent(total > 0 ? (completed + failed) / total : null, 0) ?? undefined
}

/** Only routers have recipes. */
function sectionsOf(run: Run): readonly Section[] {
  return run.manifest.targets.some((target) => target.kind === 'mom') ? SECTIONS : SECTIONS.filter((name) => name !== 'recipe')
}

function Lead({ run }: { run: Run }) {
  const t = useTexts(messages)
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
      {run.experiment_roles.map((part) => (
        <Link key={part.experiment_id} to="/experiments/$experimentId" params={{ experimentId: part.experiment_id }}>
          {t('partOf')}
        </Link>
      ))}
    </span>
  )
}

function Trouble({ run }: { run: Run }) {
  const t = useTexts(messages)
  const end = useEnd()
  const words = useTexts(common)
  const report = useQuery(reportQuery(run.id, isActive(run.status) ? null : run.updated_at))
  const failed = run.progress?.failed ?? 0
  if (isActive(run.status) || (run.status === 'completed' && failed === 0)) return null
  const first = report.data?.failure
  return (
    <Alert color="orange" variant="light" role="note" className="notice">
      {run.status !== 'completed' && (
        <p>{t('ended', { status: words(`status_${run.status}` as 'status_failed'), reason: run.reason ? end(run.reason) : '—' })}</p>
      )}
      {run.error && <Fault reason={null} text={run.error} />}
      {failed > 0 && <p>{t('notComplete', { failed, total: run.progress?.total ?? 0 })}</p>}
      {first && <p>{t('failure', { reason: end(first.reason), case: first.case_id, target: first.target_id })}</p>}
      {run.manifest.mode === 'live' && (
        <Link to="/runs/$runId/recovery" params={{ runId: run.id }}>
          {t('toRecovery')}
        </Link>
      )}
    </Alert>
  )
}

function Actions({ run }: { run: Run }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const session = useSession()
  return (
    <>
      <CopyCommand text={command('report', run.id)} />
      <CopyButton text={location.href} label={words('copyLink')} />
      <PaperLink href={address('/runs/{run_id}/report.html', { run_id: run.id })} />
      {againstBaseline(run) === null && (
        <>
          <Link to="/create" search={{ baseline: run.id, mode: 'preview' }} className="button-link small">
            {t('previewCandidate')}
          </Link>
          <Link to="/create" search={{ baseline: run.id }} className="button-link small">
            {t('evaluateCandidate')}
          </Link>
        </>
      )}
      {isActive(run.status) && session.can_write && <CancelRun run={run} />}
    </>
  )
}

function CancelRun({ run }: { run: Run }) {
  const t = useTexts(messages)
  const problem = useProblem()
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
              {problem(cancel.error)}
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
