import type { UseMutationResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Run } from '../../api/types'
import { Page, Section } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { Unsettled } from '../../submissions/Unsettled'
import { messages } from './messages'
import type { RunSubmission } from './submission'

/** A start whose answer never came. Nothing new can be made until it is settled. */
export function Reconcile({ submission, start }: { submission: RunSubmission; start: UseMutationResult<Run, Error, RunSubmission> }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const { manifest, idempotency_key } = submission
  return (
    <Page title={t('reconcile')} lead={t('reconcileText')}>
      <Section title={String(manifest.name ?? '')}>
        <Unsettled submission={submission} start={start} body={{ manifest, idempotency_key }} facts={[[t('planSha'), String(manifest.plan_sha256)]]} button={t('reconcileButton')}>
          <Link to="/runs" className="button-link">
            {words('toRuns')}
          </Link>
        </Unsettled>
      </Section>
    </Page>
  )
}
