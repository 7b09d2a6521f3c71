import { expect, it } from 'vitest'
import { traceOf } from './trace'

const HEADERS = `status: 200
content-type: text/event-stream
x-request-id: 7
x-sr-bench-config-hash: 2b12
x-vsr-selected-model: frontier
x-vsr-selected-decision: puzzles: hard ones
X-VSR-Matched-Keywords: grid, colour
x-vsr-selected-confidence: 1.0000
x-vsr-new-thing: 1
trailer x-vsr-model-usage: {"version":1}
ended by itself: yes
`

it('sorts what a router said by what it is about', () => {
  expect(traceOf(HEADERS).map(([step, rows]) => [step, rows.map(({ header, value }) => `${header}=${value}`)])).toEqual([
    ['signals', ['x-vsr-matched-keywords=grid, colour']],
    ['decision', ['x-vsr-selected-decision=puzzles: hard ones', 'x-vsr-selected-confidence=1.0000']],
    ['model', ['x-vsr-selected-model=frontier']],
    ['outcome', ['x-sr-bench-config-hash=2b12', 'x-vsr-model-usage={"version":1}']],
    ['other', ['x-vsr-new-thing=1']],
  ])
})

it('knows trailers from headers', () => {
  const usage = traceOf(HEADERS).flatMap(([, rows]) => rows).filter(({ trailer }) => trailer)
  expect(usage.map(({ header }) => header)).toEqual(['x-vsr-model-usage'])
})

it('finds nothing where no router spoke', () => expect(traceOf('status: 200\nserver: x\n')).toEqual([]))
