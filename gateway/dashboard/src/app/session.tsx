// Who is signed in. Without a token everybody on this machine is; with one, a browser shows it once and gets a cookie.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, useContext, useEffect, useRef, type ReactNode } from 'react'
import { get, remove, setCsrfToken, setSignedOutHandler, type Answer } from '../api/client'
import { Loading, Unavailable } from '../components/Notices'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { SignIn } from '../pages/session/SignIn'

export type Session = Answer<'/session'>

const sessionQuery = queryOptions({
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
  const last = useRef<Session | null>(null)
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
  const { signed_in: signedIn } = session.data
  const shown = signedIn ? session.data : last.current
  last.current = shown
  return (
    <>
      {!signedIn && <SignIn expired={shown !== null} onDone={(actor) => void (actor === shown?.actor ? queries.invalidateQueries() : queries.resetQueries())} />}
      {/* A session that ends takes nothing that was filled in with it; somebody else finds a page of their own. */}
      {shown !== null && (
        <div hidden={!signedIn} inert={!signedIn} key={shown.actor ?? ''}>
          <Context.Provider value={shown}>{children}</Context.Provider>
        </div>
      )}
    </>
  )
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
