import { Alert, Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Page } from '../components/Page'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { useProblem } from '../i18n/problems'

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
  const problem = useProblem()
  const queries = useQueryClient()
  // What was read may be what the page cannot show: all of it is read again, but who is signed in.
  const again = () => {
    queries.removeQueries({ predicate: (query) => query.queryKey[0] !== 'session' })
    reset()
  }
  return (
    <Page title={t('crashed')}>
      <Alert color="red" role="alert" className="notice">
        <div className="notice-row">
          <span>
            {t('crashedText')} <span className="soft">{problem(error)}</span>
          </span>
          <Button size="compact-sm" variant="default" onClick={again}>
            {t('retry')}
          </Button>
        </div>
      </Alert>
    </Page>
  )
}
