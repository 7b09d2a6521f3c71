import { expect, it } from 'vitest'
import { spoken, type Saying } from './sentences'

const sayings: Saying[] = [
  { text: 'The run is failed.', code: 'NOT_COMPLETED', facts: { status: 'failed' } },
  { text: 'Said since yesterday.', code: 'NEW_HERE', facts: {} },
]

it('tells a sentence by its code and facts, and leaves what has none as it is', () => {
  const zh = spoken('zh', sayings)
  expect(zh('The run is failed.')).toContain('“失败”')
  expect(zh('Said since yesterday.')).toBe('Said since yesterday.')
  expect(zh("An operator's own words.")).toBe("An operator's own words.")
  expect(spoken('en', sayings)('The run is failed.')).toBe('The run is failed.')
})
