import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { runQuery } from '../../../api/queries'
import { isActive, type Run } from '../../../api/types'
import { useSession } from '../../../app/session'
import { Empty, Loading } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { useTexts } from '../../../i18n/messages'
import { Unsettled } from '../../../submissions/Unsettled'
import { Lineage } from './Lineage'
import { messages } from './messages'
import { Planning } from './Planning'
import { useRecovery } from './submission'
import { UnknownCalls } from './UnknownCalls'

/** Cells without an answer: which can be tried again, what became of those that were, and calls whose cost is unknown. */
export function RecoveryTab() {
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const session = useSession()
  if (!run.data) return <Loading />
  return (
    <>
      <Attempts key={`${run.data.id} ${session.actor}`} run={run.data} actor={session.actor ?? ''} />
      <Lineage run={run.data} />
      {!isActive(run.data.status) && <UnknownCalls run={run.data} />}
    </>
  )
}

function Attempts({ run, actor }: { run: Run; actor: string }) {
  const t = useTexts(messages)
  const { start, open } = useRecovery(actor, run.id)
  if (open) {
    const { request, idempotency_key } = open
    return (
      <Section title={t('reconcile')} note={t('reconcileText')}>
        <Unsettled submission={open} start={start} body={{ ...request, idempotency_key }} facts={[[t('plan'), request.plan_sha256]]} button={t('reconcileButton')} />
      </Section>
    )
  }
  return (
    <Section title={t('title')} note={t('note')}>
      {isActive(run.status) ? (
        <Empty title={t('running')}>
          <p>{t('runningText')}</p>
        </Empty>
      ) : run.manifest.mode !== 'live' ? (
        <Empty title={t('notLive')}>
          <p>{t('notLiveText')}</p>
        </Empty>
      ) : (
        <Planning run={run} actor={actor} start={start} />
      )}
    </Section>
  )
}
