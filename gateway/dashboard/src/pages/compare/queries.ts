// What the page reads. A comparison is a read with a body: it starts nothing and may be asked again.
import { infiniteQueryOptions, queryOptions, type UseQueryOptions } from '@tanstack/react-query'
import { get, post, type Answer } from '../../api/client'
import { BLOCK } from '../../components/VirtualTable'
import type { CompareSearch } from './search'

export type ComparisonReport = Answer<'/comparisons', 'post'>
export type Comparison = ComparisonReport['comparisons'][number]
export type Options = Answer<'/comparison-options'>
export type Contender = Options['options'][number]
export type Pair = Answer<'/comparisons/pairs'>['pairs'][number]
export type PairSide = NonNullable<Pair['baseline']>

const PAGE = 25
const SLOW_MS = 65_000

/** Runs that can be a baseline, or, with one, its possible partners and those that are none. */
export const optionsQuery = (baseline: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ['comparison-options', baseline ?? null],
    queryFn: ({ signal, pageParam }) =>
      get('/comparison-options', { query: { baseline_run_id: baseline, limit: PAGE, after: pageParam }, signal, deadlineMs: SLOW_MS }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: Options) => last.next_cursor ?? undefined,
    staleTime: 15_000,
  })

/** `margin` in tenths of a percentage point. */
export const comparisonQuery = (baseline: string, candidates: readonly string[], margin: number | undefined) =>
  queryOptions({
    queryKey: ['comparison', baseline, candidates, margin ?? null],
    queryFn: ({ signal }) => {
      const body = { baseline_run_id: baseline, candidate_run_ids: [...candidates], ...(margin === undefined ? {} : { margin: margin / 1000 }) }
      return post('/comparisons', { body, signal, deadlineMs: SLOW_MS })
    },
    staleTime: Infinity,
  })

/** Which pairs are listed, and in which order. */
export interface PairFilter {
  baseline: string
  candidate: string
  target: string
  baselineTarget: string
  outcome?: CompareSearch['outcome']
  benchmark?: string | undefined
  by?: CompareSearch['by']
  desc?: boolean | undefined
}

function pairParams(filter: PairFilter) {
  return {
    baseline_run_id: filter.baseline,
    candidate_run_id: filter.candidate,
    baseline_target_id: filter.baselineTarget,
    candidate_target_id: filter.target,
    benchmark: filter.benchmark,
  }
}

/** Pairs `offset` and on. */
export function pairBlock(filter: PairFilter, offset: number): UseQueryOptions<{ rows: Pair[]; total: number }> {
  return {
    queryKey: ['pairs', filter, offset],
    queryFn: async ({ signal }) => {
      const query = { ...pairParams(filter), outcome: filter.outcome, sort: filter.by, descending: filter.desc, offset, limit: BLOCK }
      const page = await get('/comparisons/pairs', { query, signal, deadlineMs: SLOW_MS })
      return { rows: page.pairs, total: page.total }
    },
    staleTime: Infinity,
  }
}

/** How many pairs there are of each kind, whatever kind is listed. */
export const countsQuery = (filter: PairFilter) =>
  queryOptions({
    queryKey: ['pair-counts', filter.baseline, filter.candidate, filter.target, filter.benchmark ?? null],
    queryFn: async ({ signal }) => (await get('/comparisons/pairs', { query: { ...pairParams(filter), limit: 1 }, signal, deadlineMs: SLOW_MS })).counts,
    staleTime: Infinity,
  })

/** One question with both answers in full. */
export const pairQuery = (filter: PairFilter, caseId: string) =>
  queryOptions({
    queryKey: ['pair', filter.baseline, filter.candidate, filter.target, filter.baselineTarget, caseId],
    queryFn: async ({ signal }) => {
      const query = { ...pairParams(filter), benchmark: undefined, case_id: caseId, texts: true, limit: 1 }
      return (await get('/comparisons/pairs', { query, signal, deadlineMs: SLOW_MS })).pairs[0] ?? null
    },
    staleTime: Infinity,
  })
