import { describe, expect, it } from 'vitest'
import { differing } from './gridDiff'

describe('the difference of two grids', () => {
  it('is where their cells differ, row by row', () => {
    const one = [[1, 2, 3], [4, 5, 6]]
    const other = [[1, 0, 3], [0, 5, 0]]
    expect([...(differing(one, other) ?? [])]).toEqual([1, 3, 5])
  })
  it('is empty for equal grids', () => expect(differing([[7]], [[7]])?.size).toBe(0))
  it('is not known where the sizes differ', () => {
    expect(differing([[1, 2]], [[1], [2]])).toBeNull()
    expect(differing([[1, 2]], [[1, 2], [1, 2]])).toBeNull()
  })
})
