import { Alert, Button, Loader } from '@mantine/core'
import type { ReactNode } from 'react'
import { common } from '../i18n/common'
import { sentence, useTexts } from '../i18n/messages'
import { useProblem } from '../i18n/problems'
import { Page } from './Page'

interface LoadedProps<T> {
  query: { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown }
  what: string
  children: (data: T) => ReactNode
}

/** Something is being read. */
export function Loading({ what }: { what?: string }) {
  const t = useTexts(common)
  return (
    <div className="loading" role="status">
      <Loader size="sm" aria-hidden />
      <span>{what ?? t('loading')}</span>
    </div>
  )
}

/** Something could not be read: which thing, why, and a way to try again. */
export function Unavailable({ what, error, retry }: { what: string; error: unknown; retry?: (() => void) | undefined }) {
  const t = useTexts(common)
  const problem = useProblem()
  return (
    <Alert color="red" variant="light" role="alert" className="notice">
      <div className="notice-row">
        <span>{sentence(t('unavailable', { what, message: problem(error) }))}</span>
        {retry && (
          <Button size="compact-sm" variant="default" onClick={retry}>
            {t('retry')}
          </Button>
        )}
      </div>
    </Alert>
  )
}

/** What is shown is older than the last attempt to read it. */
export function Stale({ error }: { error: unknown }) {
  const t = useTexts(common)
  const problem = useProblem()
  return (
    <Alert color="yellow" variant="light" role="status" className="notice">
      {t('staleData', { message: problem(error) })}
    </Alert>
  )
}

/** There is truly nothing, in words that say why. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** A whole page of one thing: until it is there, and when it is not, the page says so under a title of its own. */
export function LoadedPage<T>({ query, what, title, children }: LoadedProps<T> & { title?: string }) {
  if (query.data === undefined && query.error) {
    return (
      <Page title={title ?? sentence(what)}>
        <Unavailable what={what} error={query.error} retry={() => void query.refetch()} />
      </Page>
    )
  }
  if (query.data === undefined) return <LoadingPage />
  return (
    <Loaded query={query} what={what}>
      {children}
    </Loaded>
  )
}

/** A page of which nothing is there yet, where the page will stand. */
export function LoadingPage() {
  return (
    <div className="page">
      <Loading />
    </div>
  )
}

/** Loading, unavailable, or what there is: three states that are never mixed up. */
export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error ? <Stale error={query.error} /> : null}
        {children(query.data)}
      </>
    )
  }
  if (query.error) return <Unavailable what={what} error={query.error} retry={() => void query.refetch()} />
  return <Loading />
}
