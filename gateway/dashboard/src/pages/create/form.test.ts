import { describe, expect, it } from 'vitest'
import type { DatasetSelection, Target } from '../../api/types'
import { EMPTY, isPriced, manifestOf, problemsOf, type Form } from './form'
import { sources } from './useReview'

const single = { id: 's', kind: 'single', model: 'm', prices: { m: { input: 1, cached_input: 1, cache_write: 1, output: 1 } } } as unknown as Target
const router = { id: 'r', kind: 'mom', model: 'r', request_params: { max_tokens: 9000 } } as unknown as Target
const whole: Form = { ...EMPTY, name: 'n', benchmarks: ['mmlu-pro'], targets: ['s'] }
const keys = (form: Form, unusable: string[] = []) => problemsOf(form, [single, router], unusable).map((problem) => problem.key)

describe('the form', () => {
  it('has no problem when it is whole', () => expect(keys(whole)).toEqual([]))
  it('names everything that is wrong at once', () => {
    expect(keys({ ...EMPTY })).toEqual(['needName', 'needScope', 'needTargets'])
    expect(keys(whole, ['hle'])).toEqual(['unusable'])
  })
  it('asks routers only for a preview', () => expect(keys({ ...whole, mode: 'preview' })).toContain('previewNeedsMom'))
  it('refuses a fixed number of tokens above the cap', () => expect(keys({ ...whole, targets: ['r'] })).toEqual(['fixedTokens']))
  it('bounds limits and sampling', () => {
    expect(keys({ ...whole, limits: { ...EMPTY.limits, concurrency: 0 } })).toEqual(['badLimit'])
    expect(keys({ ...whole, limits: { ...EMPTY.limits, idle_timeout_s: 999 } })).toEqual(['idleAboveTotal'])
    expect(keys({ ...whole, sampling: { temperature: 2.1, top_p: -1, seed: 1.5 } })).toEqual(['temperatureRange', 'topPRange', 'wholeSeed'])
  })
  it('counts a price only for the model itself', () => {
    expect(isPriced(single)).toBe(true)
    expect(isPriced({ ...single, prices: {} })).toBe(false)
    expect(isPriced({ ...single, model: 'other' })).toBe(false)
  })
  it('never leaks a preview context into an evaluation', () => {
    const dataset = { path: '/d', sha256: 'x', seed: 1, profile: 'smoke' }
    const filled = { ...whole, sessionId: 'abc', previewSeed: 3 }
    expect(manifestOf(filled, [single], dataset)).not.toHaveProperty('preview_context')
    expect(manifestOf({ ...filled, mode: 'preview' }, [router], dataset)).toHaveProperty('preview_context', { session_id: 'abc', sampling_seed: 3 })
  })
})

describe('the datasets of a selection', () => {
  const selection = { benchmarks: [{ id: 'a', source_ids: ['1', '3'] }, { id: 'b', source_ids: ['2', '3'] }] } as unknown as DatasetSelection
  it('are one where one holds all', () => expect(sources(selection, ['a', 'b'])).toEqual(['3']))
  it('are one each otherwise', () => expect(sources({ ...selection, benchmarks: [{ ...selection.benchmarks[0]!, source_ids: ['1'] }, selection.benchmarks[1]!] }, ['a', 'b'])).toEqual(['1', '2']))
})
