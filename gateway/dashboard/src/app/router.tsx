import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { QueryClient } from '@tanstack/react-query'
import { compareSearch } from '../pages/compare/search'
import { createSearch } from '../pages/create/search'
import { datasetSearch, datasetsSearch } from '../pages/datasets/search'
import { callsSearch, evidenceSearch, questionsSearch } from '../pages/run/search'
import { runsSearch } from '../pages/runs/search'
import { Failed, Missing } from './Trouble'
import { Layout } from './Layout'
import { Loading } from '../components/Notices'

const root = createRootRouteWithContext<{ queries: QueryClient }>()({ component: Layout, notFoundComponent: Missing })

/** Addresses of the released Dashboard: everything was in `view=` and its neighbours. */
function fromReleased(search: Record<string, unknown>): never {
  const text = (name: string) => (typeof search[name] === 'string' ? (search[name] as string) : undefined)
  const run = text('run')
  const dataset = text('dataset')
  if (run) throw redirect({ to: '/runs/$runId', params: { runId: run }, replace: true })
  if (text('view') === 'compare') throw redirect({ to: '/compare', search: compareSearch(search), replace: true })
  if (text('view') === 'new') throw redirect({ to: '/create', search: createSearch(search), replace: true })
  if (text('view') === 'preview') throw redirect({ to: '/create', search: { ...createSearch(search), mode: 'preview' }, replace: true })
  if (dataset) throw redirect({ to: '/datasets/$datasetId', params: { datasetId: dataset }, search: {}, replace: true })
  if (text('view') === 'datasets') throw redirect({ to: '/datasets', search: {}, replace: true })
  throw redirect({ to: '/runs', search: runsSearch(search), replace: true })
}

const start = createRoute({ getParentRoute: () => root, path: '/', beforeLoad: ({ search }) => fromReleased(search as Record<string, unknown>) })
const released = createRoute({ getParentRoute: () => root, path: '/evaluation', beforeLoad: ({ search }) => fromReleased(search as Record<string, unknown>) })

const runs = createRoute({
  getParentRoute: () => root,
  path: '/runs',
  validateSearch: runsSearch,
  component: lazyRouteComponent(() => import('../pages/runs/RunsPage'), 'RunsPage'),
})

const run = createRoute({
  getParentRoute: () => root,
  path: '/runs/$runId',
  component: lazyRouteComponent(() => import('../pages/run/RunPage'), 'RunPage'),
})
const runStart = createRoute({
  getParentRoute: () => run,
  path: '/',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/runs/$runId/results', params, replace: true })
  },
})
const results = createRoute({
  getParentRoute: () => run,
  path: 'results',
  component: lazyRouteComponent(() => import('../pages/run/ResultsTab'), 'ResultsTab'),
})
const questions = createRoute({
  getParentRoute: () => run,
  path: 'questions',
  validateSearch: questionsSearch,
  component: lazyRouteComponent(() => import('../pages/run/QuestionsTab'), 'QuestionsTab'),
})
const calls = createRoute({
  getParentRoute: () => run,
  path: 'calls',
  validateSearch: callsSearch,
  component: lazyRouteComponent(() => import('../pages/run/CallsTab'), 'CallsTab'),
})
const evidence = createRoute({
  getParentRoute: () => run,
  path: 'evidence',
  validateSearch: evidenceSearch,
  component: lazyRouteComponent(() => import('../pages/run/EvidenceTab'), 'EvidenceTab'),
})

const create = createRoute({
  getParentRoute: () => root,
  path: '/create',
  validateSearch: createSearch,
  component: lazyRouteComponent(() => import('../pages/create/CreatePage'), 'CreatePage'),
})

const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => import('../pages/compare/ComparePage'), 'ComparePage'),
})

const datasets = createRoute({
  getParentRoute: () => root,
  path: '/datasets',
  validateSearch: datasetsSearch,
  component: lazyRouteComponent(() => import('../pages/datasets/DatasetsPage'), 'DatasetsPage'),
})
const dataset = createRoute({
  getParentRoute: () => root,
  path: '/datasets/$datasetId',
  validateSearch: datasetSearch,
  component: lazyRouteComponent(() => import('../pages/datasets/DatasetPage'), 'DatasetPage'),
})

const targets = createRoute({
  getParentRoute: () => root,
  path: '/targets',
  component: lazyRouteComponent(() => import('../pages/targets/TargetsPage'), 'TargetsPage'),
})

const tree = root.addChildren([
  start,
  released,
  runs,
  run.addChildren([runStart, results, questions, calls, evidence]),
  create,
  compare,
  datasets,
  dataset,
  targets,
])

export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPreload: 'intent',
    scrollRestoration: true,
    defaultPendingComponent: () => <Loading />,
    defaultErrorComponent: Failed,
    defaultNotFoundComponent: Missing,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
