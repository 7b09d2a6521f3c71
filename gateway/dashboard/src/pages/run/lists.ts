// The blocks of a run's two long lists, under the filters of the page.
import type { UseQueryOptions } from '@tanstack/react-query'
import { get, type QueryOf } from '../../api/client'
import type { CallRow, Outcome } from '../../api/types'
import { BLOCK } from '../../components/VirtualTable'
import type { CallsSearch, QuestionsSearch } from './search'

type Block<Row> = UseQueryOptions<{ rows: Row[]; total: number }>

/** What the service is asked for under the page's filters. */
export function outcomeFilter(search: QuestionsSearch): QueryOf<'/runs/{run_id}/results'> {
  const { q, target, benchmark, status, correct, reason, model, decision, by, desc } = search
  return { q, target_id: target, benchmark, status, correct, reason, model, decision, order_by: by, descending: desc }
}

export function callFilter(search: CallsSearch): QueryOf<'/runs/{run_id}/calls'> {
  const { target, case: caseId, status, role, reason, model, decision, finish, by, desc } = search
  return { target_id: target, case_id: caseId, status, role, reason, model, decision, finish_reason: finish, order_by: by, descending: desc }
}

/** Rows `offset` and on; read again when `moment` changes, which is when the run did. */
export function outcomeBlock(runId: string, search: QuestionsSearch, moment: number | null, offset: number): Block<Outcome> {
  const query = { ...outcomeFilter(search), offset, limit: BLOCK }
  return {
    queryKey: ['results', runId, query, moment],
    queryFn: async ({ signal }) => {
      const page = await get('/runs/{run_id}/results', { path: { run_id: runId }, query, signal })
      return { rows: page.results, total: page.total }
    },
    staleTime: Infinity,
    placeholderData: (previous) => previous,
  }
}

export function callBlock(runId: string, search: CallsSearch, moment: number | null, offset: number): Block<CallRow> {
  const query = { ...callFilter(search), offset, limit: BLOCK }
  return {
    queryKey: ['calls', runId, query, moment],
    queryFn: async ({ signal }) => {
      const page = await get('/runs/{run_id}/calls', { path: { run_id: runId }, query, signal })
      return { rows: page.calls, total: page.total }
    },
    staleTime: Infinity,
    placeholderData: (previous) => previous,
  }
}
