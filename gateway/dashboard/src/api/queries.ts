// What is read, under which key, and how often again. Reads never retry by themselves: the next poll is the retry, and an
// error clears on the next good read.
import { queryOptions } from '@tanstack/react-query'
import { get, type QueryOf } from './client'
import { isActive } from './types'

export const ACTIVE_MS = 2_500
export const TROUBLED_MS = 5_000
export const IDLE_MS = 15_000

export const catalogQuery = queryOptions({
  queryKey: ['catalog'],
  queryFn: ({ signal }) => get('/catalog', { signal }),
  staleTime: 60_000,
})

export const targetsQuery = queryOptions({
  queryKey: ['targets'],
  queryFn: ({ signal }) => get('/targets', { signal }),
  staleTime: IDLE_MS,
})

export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: ({ signal }) => get('/health', { signal }),
  refetchInterval: IDLE_MS,
})

export const runsQuery = (filter: QueryOf<'/runs'>) =>
  queryOptions({
    queryKey: ['runs', filter],
    queryFn: ({ signal }) => get('/runs', { query: filter, signal }),
    placeholderData: (previous) => previous,
    refetchInterval: (query) => {
      if (query.state.status === 'error') return TROUBLED_MS
      return query.state.data?.runs.some((run) => isActive(run.status)) ? ACTIVE_MS : IDLE_MS
    },
  })

export const runQuery = (runId: string) =>
  queryOptions({
    queryKey: ['run', runId],
    queryFn: ({ signal }) => get('/runs/{run_id}', { path: { run_id: runId }, signal }),
    refetchInterval: (query) => {
      if (query.state.status === 'error') return TROUBLED_MS
      const run = query.state.data
      return run && !isActive(run.status) ? false : ACTIVE_MS
    },
  })

export const reportQuery = (runId: string, updatedAt: number | null) =>
  queryOptions({
    queryKey: ['report', runId, updatedAt],
    queryFn: ({ signal }) => get('/runs/{run_id}/report', { path: { run_id: runId }, signal, deadlineMs: 60_000 }),
    enabled: updatedAt !== null,
    placeholderData: (previous) => previous,
  })

export const spendQuery = (runId: string, active: boolean) =>
  queryOptions({
    queryKey: ['spend', runId, active],
    queryFn: ({ signal }) => get('/runs/{run_id}/spend', { path: { run_id: runId }, signal }),
    refetchInterval: active ? ACTIVE_MS : false,
    placeholderData: (previous) => previous,
  })

/** One call with its texts. */
export const callQuery = (runId: string, callId: string) =>
  queryOptions({
    queryKey: ['call', runId, callId],
    queryFn: ({ signal }) => get('/runs/{run_id}/calls/{call_id}', { path: { run_id: runId, call_id: callId }, signal }),
  })

export const datasetsQuery = queryOptions({
  queryKey: ['datasets'],
  queryFn: ({ signal }) => get('/datasets', { signal }),
  refetchInterval: (query) => (query.state.status === 'error' ? TROUBLED_MS : IDLE_MS),
})

export const datasetQuery = (datasetId: string) =>
  queryOptions({
    queryKey: ['dataset', datasetId],
    queryFn: ({ signal }) => get('/datasets/{dataset_id}', { path: { dataset_id: datasetId }, signal }),
    staleTime: Infinity,
  })
