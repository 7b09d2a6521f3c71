import { queryOptions } from '@tanstack/react-query'
import { get } from '../../api/client'
import { verified } from '../run/recipe/verified'

/** The verified recipes of a run by router: what was captured and is proven, nothing else. */
export const recipesQuery = (runId: string) =>
  queryOptions({
    queryKey: ['verified-recipes', runId],
    queryFn: async ({ signal }) => {
      const { recipes } = await get('/runs/{run_id}/recipes', { path: { run_id: runId }, signal })
      const sure = recipes.filter((entry) => verified(entry) !== null)
      const read = sure.map(({ target_id }) => get('/runs/{run_id}/recipes/download', { path: { run_id: runId }, query: { target_id }, signal }))
      return Object.fromEntries((await Promise.all(read)).map((recipe) => [recipe.target_id, rules(recipe)]))
    },
    staleTime: Infinity,
  })

/** A recipe without when and how it was captured: those differ between any two captures. */
function rules(recipe: Record<string, unknown>): Record<string, unknown> {
  const { captured_at: _at, source: _source, scope: _scope, redacted: _redacted, ...rest } = recipe
  return rest
}
