import { Alert, Button } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { messageOf } from '../../api/errors'
import type { Run } from '../../api/types'
import { JsonBlock } from '../../components/JsonBlock'
import { Page, Section } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import type { Submission } from './submission'

/** A start whose answer never came. Nothing new can be made until it is settled. */
export function Reconcile({ submission, start }: { submission: Submission; start: UseMutationResult<Run, Error, Submission> }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  return (
    <Page title={t('reconcile')} lead={t('reconcileText')}>
      <Section title={String(submission.manifest.name ?? '')}>
        <dl className="facts">
          <dt>{t('reconcileKey')}</dt>
          <dd className="mono">{submission.idempotency_key}</dd>
          <dt>{t('planSha')}</dt>
          <dd className="mono">{String(submission.manifest.plan_sha256)}</dd>
        </dl>
        <JsonBlock title={t('frozen')} value={submission.manifest} />
        {start.error && (
          <Alert color="orange" variant="light" role="alert" title={t('stillOpen')}>
            <p className="plain">{messageOf(start.error)}</p>
          </Alert>
        )}
        <div className="actions">
          {/* Whatever was sent before, its answer is not known here. */}
          <Button loading={start.isPending} onClick={() => start.mutate({ ...submission, unanswered: true })}>
            {t('reconcileButton')}
          </Button>
          <Link to="/runs" className="button-link">
            {words('toRuns')}
          </Link>
        </div>
      </Section>
    </Page>
  )
}
