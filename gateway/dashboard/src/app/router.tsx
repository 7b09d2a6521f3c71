import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import type { QueryClient } from '@tanstack/react-query'
import { compareSearch } from '../pages/compare/search'
import { createSearch } from '../pages/create/search'
import { datasetSearch, datasetsSearch } from '../pages/datasets/search'
import { SECTIONS } from '../pages/run/sections'
import { experimentsSearch } from '../pages/experiments/search'
import { callsSearch, evidenceSearch, questionsSearch } from '../pages/run/search'
import { runsSearch } from '../pages/runs/search'
import { Failed, Missing } from './Trouble'
import { Layout } from './Layout'
import { LoadingPage } from '../components/Notices'

const root = createRootRouteWithContext<{ queries: QueryClient }>()({ component: Layout, notFoundComponent: Missing })

/** Addresses of the released Dashboard: everything was in `view=` and its neighbours. */
function fromReleased(search: Record<string, unknown>): never {
  const text = (name: string) => (typeof search[name] === 'string' ? (search[name] as string) : undefined)
  const run = text('run')
  const dataset = text('dataset')
  const section = SECTIONS.find((name) => name === text('section')) ?? 'results'
  if (run) throw redirect({ to: `/runs/$runId/${section}`, params: { runId: run }, replace: true })
  const experiment = text('experiment')
  if (experiment && (text('view') ?? 'experiments') === 'experiments') throw redirect({ to: '/experiments/$experimentId', params: { experimentId: experiment }, replace: true })
  if (text('view') === 'experiments') throw redirect({ to: '/experiments', search: {}, replace: true })
  if (text('view') === 'compare') throw redirect({ to: '/compare', search: compareSearch(search), replace: true })
  if (text('view') === 'new') throw redirect({ to: '/create', search: createSearch(search), replace: true })
  if (text('view') === 'preview') throw redirect({ to: '/create', search: { ...createSearch(search), mode: 'preview' }, replace: true })
  if (dataset) throw redirect({ to: '/datasets/$datasetId', params: { datasetId: dataset }, search: {}, replace: true })
  if (text('view') === 'datasets') throw redirect({ to: '/datasets', search: {}, replace: true })
  throw redirect({ to: '/runs', search: runsSearch(search), replace: true })
}

const anySearch = (search: Record<string, unknown>) => search
const start = createRoute({ getParentRoute: () => root, path: '/', validateSearch: anySearch, beforeLoad: ({ search }) => fromReleased(search) })
const released = createRoute({ getParentRoute: () => root, path: '/evaluation', validateSearch: anySearch, beforeLoad: ({ search }) => fromReleased(search) })

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

const recipe = createRoute({
  getParentRoute: () => run,
  path: 'recipe',
  component: lazyRouteComponent(() => import('../pages/run/recipe/RecipeTab'), 'RecipeTab'),
})
const recovery = createRoute({
  getParentRoute: () => run,
  path: 'recovery',
  component: lazyRouteComponent(() => import('../pages/run/recovery/RecoveryTab'), 'RecoveryTab'),
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

const experiments = createRoute({
  getParentRoute: () => root,
  path: '/experiments',
  validateSearch: experimentsSearch,
  component: lazyRouteComponent(() => import('../pages/experiments/ExperimentsPage'), 'ExperimentsPage'),
})
const experiment = createRoute({
  getParentRoute: () => root,
  path: '/experiments/$experimentId',
  component: lazyRouteComponent(() => import('../pages/experiments/ExperimentPage'), 'ExperimentPage'),
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
  run.addChildren([runStart, results, questions, calls, evidence, recipe, recovery]),
  create,
  compare,
  experiments,
  experiment,
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
    // What a page's own reader of the address did not take is not there.
    search: { strict: true },
    defaultPendingComponent: LoadingPage,
    defaultErrorComponent: Failed,
    defaultNotFoundComponent: Missing,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
