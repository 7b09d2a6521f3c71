// Who is signed in. Without a token everybody on this machine is; with one, a browser shows it once and gets a cookie.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect, type ReactNode } from 'react'
import { get, remove, setCsrfToken, setSignedOutHandler, type Answer } from '../api/client'
import { Loading, Unavailable } from '../components/Notices'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { SignIn } from '../pages/session/SignIn'

export type Session = Answer<'/session'>

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }) => {
    const session = await get('/session', { signal })
    setCsrfToken(session.csrf_token ?? '')
    return session
  },
  staleTime: Infinity,
  refetchInterval: (query) => (query.state.data === undefined && query.state.status === 'error' ? 5_000 : false),
})

const Context = createContext<Session | null>(null)

/** Shows the pages to whoever may see them, and the sign-in to everybody else. */
export function SessionGate({ children }: { children: ReactNode }) {
  const t = useTexts(common)
  const queries = useQueryClient()
  const session = useQuery(sessionQuery)
  useEffect(() => {
    setSignedOutHandler(() => void queries.invalidateQueries({ queryKey: sessionQuery.queryKey }))
  }, [queries])
  if (session.data === undefined) {
    return (
      <div className="page">
        {session.error ? <Unavailable what={t('session')} error={session.error} retry={() => void session.refetch()} /> : <Loading />}
      </div>
    )
  }
  if (!session.data.signed_in) return <SignIn onDone={() => void queries.resetQueries()} />
  return <Context.Provider value={session.data}>{children}</Context.Provider>
}

/** The session of whoever looks at the page. */
export function useSession(): Session {
  const session = useContext(Context)
  if (session === null) throw new Error('useSession outside SessionGate')
  return session
}

/** Ends the session; nothing that was read stays in this tab. */
export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    await remove('/session')
    setCsrfToken('')
    queries.clear()
    location.assign('/runs')
  }
}
