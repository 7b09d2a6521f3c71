// Pushed changes of a run. They only fill the same cache that polling fills: without them nothing is lost but speed.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { address } from '../../api/client'
import { parseExact } from '../../api/exactJson'
import { runQuery, spendQuery } from '../../api/queries'
import type { Run, Spend } from '../../api/types'

const REOPEN_MS = 5_000

/** Listens while the run is active and the page is seen; says whether a stream is open. */
export function useRunWatch(runId: string, active: boolean): boolean {
  const queries = useQueryClient()
  const [open, setOpen] = useState(false)
  useEffect(() => {
    if (!active) return undefined
    let source: EventSource | null = null
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = () => {
      clearTimeout(timer)
      source?.close()
      source = null
      setOpen(false)
    }
    const start = () => {
      stop()
      // A browser opens few connections to one origin: a page that nobody sees must not hold one.
      if (document.hidden) return
      const opened = new EventSource(address('/runs/{run_id}/watch', { run_id: runId }))
      source = opened
      opened.addEventListener('open', () => setOpen(true))
      opened.addEventListener('run', (event) => take(event.data as string))
      opened.addEventListener('end', () => {
        stop()
        void queries.invalidateQueries({ queryKey: ['run', runId] })
      })
      opened.addEventListener('error', () => {
        stop()
        timer = setTimeout(start, REOPEN_MS)
      })
    }
    const take = (data: string) => {
      const { spend, ...changed } = parseExact(data) as Partial<Run> & { spend: Spend | null }
      queries.setQueryData(runQuery(runId).queryKey, (old) => (old ? { ...old, ...changed } : old))
      if (spend) queries.setQueryData(spendQuery(runId, true).queryKey, spend)
    }
    start()
    document.addEventListener('visibilitychange', start)
    addEventListener('online', start)
    return () => {
      document.removeEventListener('visibilitychange', start)
      removeEventListener('online', start)
      stop()
    }
  }, [runId, active, queries])
  return open
}
