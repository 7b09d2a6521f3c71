import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { get, type Answer } from '../../api/client'
import { ACTIVE_MS, IDLE_MS, TROUBLED_MS } from '../../api/queries'
import { isActive } from '../../api/types'

export type ExperimentRuns = Answer<'/experiments/{experiment_id}/runs'>
export type Member = ExperimentRuns['members'][number]
export type Experiment = ExperimentRuns['experiment']

const PAGE = 20
const MOST = 50

/** Experiments, newest first. */
export const experimentsQuery = (after: number | undefined) =>
  queryOptions({
    queryKey: ['experiments', after ?? null],
    queryFn: ({ signal }) => get('/experiments', { query: { after, limit: PAGE }, signal }),
    refetchInterval: (query) => (query.state.status === 'error' ? TROUBLED_MS : IDLE_MS),
    placeholderData: (previous) => previous,
  })

/** The runs of an experiment, newest link first; read on while one of them is active. */
export const membersQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['experiment', id],
    queryFn: ({ pageParam, signal }) => get('/experiments/{experiment_id}/runs', { path: { experiment_id: id }, query: { after: pageParam, limit: MOST }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page: ExperimentRuns) => page.next_cursor ?? undefined,
    refetchInterval: (query) => (query.state.data?.pages.some((page) => page.members.some(({ run }) => isActive(run.status))) ? ACTIVE_MS : IDLE_MS),
  })
