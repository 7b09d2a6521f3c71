import { describe, expect, it } from 'vitest'
import { verified, type RunRecipe } from './verified'

const HASH = 'a'.repeat(64)
const whole = {
  target_id: 'mixture',
  status: 'captured',
  reason: null,
  config_hash: HASH,
  recipe: {
    target_id: 'mixture',
    config_hash: HASH,
    captured_at: 1,
    source_config_hash: 'b'.repeat(64),
    generated_runtime_hash: HASH,
    active_runtime_hash: HASH,
    recipe_sha256: 'c'.repeat(64),
    redactions: [],
    redacted: false,
    source: 'router_config_api_bracketed_hashes',
    scope: '',
  },
} satisfies RunRecipe

describe('verified', () => {
  it('takes a capture whose hashes are all the frozen one', () => {
    expect(verified(whole)).toBe(whole.recipe)
  })

  it.each([
    ['a capture that failed', { ...whole, status: 'unavailable' }],
    ['no frozen hash', { ...whole, config_hash: null }],
    ['another active hash', { ...whole, recipe: { ...whole.recipe, active_runtime_hash: 'd'.repeat(64) } }],
    ['another source', { ...whole, recipe: { ...whole.recipe, source: 'a file' } }],
    ['nothing captured', { ...whole, recipe: null }],
  ])('refuses %s', (_name, entry) => {
    expect(verified(entry as RunRecipe)).toBeNull()
  })
})
