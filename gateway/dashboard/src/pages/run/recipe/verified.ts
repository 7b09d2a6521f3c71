import type { components } from '../../../api/schema'

export type RunRecipe = components['schemas']['RunRecipe']
export type Recipe = components['schemas']['Recipe']

/** The only source whose hashes were read before and after the configuration was. */
const SOURCE = 'router_config_api_bracketed_hashes'

/** The recipe of a router, when it is surely what its frozen hash names; `null` otherwise. Nothing is borrowed from later. */
export function verified(entry: RunRecipe): Recipe | null {
  const { recipe, config_hash: frozen } = entry
  if (entry.status !== 'captured' || !recipe || !frozen || recipe.source !== SOURCE) return null
  const hashes = [recipe.config_hash, recipe.generated_runtime_hash, recipe.active_runtime_hash]
  return hashes.every((hash) => hash === frozen) ? recipe : null
}
