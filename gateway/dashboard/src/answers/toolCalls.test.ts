import { expect, it } from 'vitest'
import { toolCallsIn } from './toolCalls'

it('reads names and arguments of tool calls', () => {
  expect(toolCallsIn([{ id: 'a', function: { name: 'refund', arguments: '{"order":1}' } }])).toEqual([{ name: 'refund', given: '{"order":1}' }])
})

it('keeps what has another shape, whole', () => {
  const odd = { type: 'custom', input: 'x' }
  expect(toolCallsIn([odd, null, { function: { name: 'f' } }])).toEqual([
    { name: null, given: odd },
    { name: null, given: null },
    { name: 'f', given: { function: { name: 'f' } } },
  ])
  expect(toolCallsIn(null)).toEqual([])
})
