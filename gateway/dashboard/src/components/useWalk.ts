import { useQueryClient, type UseQueryOptions } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Walk } from './DetailPane'
import { BLOCK } from './VirtualTable'
import { useKeys } from './useKeys'

type Blocks<Row> = (offset: number) => UseQueryOptions<{ rows: Row[]; total: number }>

/** Walks through a filtered list: the row before and after the open one, read where it is not yet there. */
export function useWalk<Row>(block: Blocks<Row>, total: number, place: number | undefined, open: (row: Row, place: number) => void): Walk {
  const queries = useQueryClient()
  const walk = useMemo(() => {
    const to = async (next: number) => {
      if (next < 0 || next >= total) return
      const offset = Math.floor(next / BLOCK) * BLOCK
      const found = await queries.fetchQuery(block(offset) as Parameters<typeof queries.fetchQuery>[0]).catch(() => undefined)
      const row = (found as { rows: Row[] } | undefined)?.rows[next - offset]
      if (row !== undefined) open(row, next)
    }
    return { next: () => void to((place ?? -1) + 1), previous: () => void to((place ?? 0) - 1) }
  }, [queries, block, total, place, open])
  useKeys(useMemo(() => ({ j: walk.next, k: walk.previous }), [walk]))
  return walk
}
