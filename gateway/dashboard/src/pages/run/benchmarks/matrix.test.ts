import { describe, expect, it } from 'vitest'
import type { Metrics } from '../../../api/types'
import { byLoss, difference, linesOf } from './matrix'

const row = (benchmark: string, target: string, accuracy: number | null, cost: number | null) =>
  ({ benchmark, target_id: target, id: target, accuracy, cost_usd: cost }) as unknown as Metrics
const lines = linesOf([row('a', 'one', 0.5, 1), row('a', 'two', 0.25, null), row('b', 'one', 0.5, 1), row('b', 'two', 1, 3), row('c', 'one', null, 1)])
const names = (found: { benchmark: string }[]) => found.map((line) => line.benchmark)

describe('the matrix', () => {
  it('has a line a benchmark and a cell a target', () => {
    expect(names(lines)).toEqual(['a', 'b', 'c'])
    expect([...lines[0]!.cells.keys()]).toEqual(['one', 'two'])
  })

  it('differs by what is known', () => {
    expect(difference('accuracy', lines[1]!, 'two', 'one')).toBe(0.5)
    expect(difference('cost', lines[0]!, 'two', 'one')).toBeNull()
    expect(difference('accuracy', lines[2]!, 'two', 'one')).toBeNull()
  })

  it('puts the largest loss first and what is unknown last', () => {
    expect(names(byLoss('accuracy', lines, 'one'))).toEqual(['a', 'b', 'c'])
    expect(names(byLoss('accuracy', lines, 'two'))).toEqual(['b', 'a', 'c'])
    expect(names(byLoss('cost', lines, 'one'))).toEqual(['b', 'a', 'c'])
  })
})
