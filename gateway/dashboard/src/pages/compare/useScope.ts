import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { membersQuery } from '../experiments/queries'
import type { CompareSearch } from './search'

/** What may be compared: everything, or the runs of one experiment, once they are all known. */
export type Scope = { kind: 'all' } | { kind: 'reading' } | { kind: 'unreadable'; error: unknown; retry: () => void } | { kind: 'experiment'; name: string; runs: ReadonlySet<string> }

/** The scope that the address asks for. Only a click widens it. */
export function useScope(search: CompareSearch): Scope {
  const within = search.experiment !== undefined && search.scope !== 'all'
  const members = useInfiniteQuery({ ...membersQuery(search.experiment ?? ''), enabled: within })
  const { hasNextPage, isFetching, fetchNextPage } = members
  useEffect(() => {
    if (within && hasNextPage && !isFetching) void fetchNextPage()
  }, [within, hasNextPage, isFetching, fetchNextPage])
  if (!within) return { kind: 'all' }
  if (members.error && !members.data) return { kind: 'unreadable', error: members.error, retry: () => void members.refetch() }
  if (!members.data || hasNextPage) return { kind: 'reading' }
  const { pages } = members.data
  return { kind: 'experiment', name: pages[0]?.experiment?.name ?? '', runs: new Set(pages.flatMap((page) => page.members.map((member) => member.run_id))) }
}

/** The runs of an address that lie outside the scope. */
export function outsideOf(scope: Scope, ids: readonly string[]): string[] {
  return scope.kind === 'experiment' ? ids.filter((id) => !scope.runs.has(id)) : []
}
