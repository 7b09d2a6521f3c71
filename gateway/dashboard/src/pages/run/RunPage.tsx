import { Outlet, useParams } from '@tanstack/react-router'
import { Page } from '../../components/Page'

export function RunPage() {
  const { runId } = useParams({ from: '/runs/$runId' })
  return (
    <Page title={runId}>
      <Outlet />
    </Page>
  )
}
