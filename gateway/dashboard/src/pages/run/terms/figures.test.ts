import { expect, it } from 'vitest'
import type { Metrics } from '../../../api/types'
import { fill, type Translate } from '../../../i18n/messages'
import { figureOf } from './figures'
import { messages } from './messages'

const t: Translate<typeof messages.en> = (key, values) => fill(messages.en[key as keyof typeof messages.en], values)
const row = { id: 'mixture', total: 20, completed: 15, failed: 3, pending: 2, correct: 12, accuracy: 0.6, accuracy_ci95: [0.4, 0.8], macro_accuracy: 0.5, cost_usd: null, cache_neutral_cost_usd: 2, latency_p50_s: 0.5, latency_p95_s: 2 } as Metrics
const benchmarks = [
  { target_id: 'mixture', benchmark: 'arc-agi-2', correct: 1, total: 10 },
  { target_id: 'mixture', benchmark: 'mmlu-pro', correct: 9, total: 10 },
  { target_id: 'other', benchmark: 'mmlu-pro', correct: 4, total: 10 },
] as Metrics[]

it.each([
  ['macro', 'arc-agi-2 1 of 10, mmlu-pro 9 of 10 → 50.0%'],
  ['accuracy', '12 ÷ 20 = 60.0%, 95 % interval 40.0% to 80.0%'],
  ['denominator', '20 planned = 15 answered + 3 failed + 2 pending; 12 right'],
  ['failures', '18 ended − 15 answered = 3'],
  ['latency', 'p50 500 ms, p95 2 s, of 15 answered'],
] as const)('says %s with the figures of the target', (term, text) => expect(figureOf(term, row, benchmarks, t)).toBe(text))

it.each(['observed', 'neutral', 'ttft', 'cacheRead'] as const)('says nothing of %s where a figure is unknown', (term) => {
  expect(figureOf(term, row, benchmarks, t)).toBeNull()
})

it('says nothing of answers where none were given', () => {
  const preview = { ...row, correct: null, accuracy: null, accuracy_ci95: null, macro_accuracy: null }
  for (const term of ['macro', 'accuracy', 'denominator'] as const) expect(figureOf(term, preview, benchmarks, t)).toBeNull()
})
