import { Alert, Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { messageOf } from '../api/errors'
import { Page } from '../components/Page'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

/** An address that names nothing. */
export function Missing() {
  const t = useTexts(common)
  return (
    <Page title={t('notFound')} lead={t('notFoundText')}>
      <Link to="/runs">{t('toRuns')}</Link>
    </Page>
  )
}

/** A page that threw: what it said, and a way to show it again. Nothing that runs is touched. */
export function Failed({ error, reset }: { error: unknown; reset: () => void }) {
  const t = useTexts(common)
  return (
    <Page title={t('crashed')}>
      <Alert color="red" role="alert" className="notice">
        <div className="notice-row">
          <span>{messageOf(error)}</span>
          <Button size="compact-sm" variant="default" onClick={reset}>
            {t('retry')}
          </Button>
        </div>
      </Alert>
    </Page>
  )
}
