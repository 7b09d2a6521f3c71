import { describe, expect, it } from 'vitest'
import { bounds, curve } from './ecdf'

describe('a distribution', () => {
  it('goes from no share at the least to all of it at the greatest value', () => {
    expect(curve([1, 2, 4])).toEqual([{ value: 1, share: 0 }, { value: 2, share: 0.5 }, { value: 4, share: 1 }])
  })
  it('keeps the corners of equal values', () => {
    expect(curve([1, 1, 1, 1, 3]).map(({ share }) => share)).toEqual([0, 0.75, 1])
  })
  it('of one value or none is that', () => {
    expect(curve([])).toEqual([])
    expect(curve([5])).toEqual([{ value: 5, share: 1 }])
  })
  it('has bounds only above 0', () => {
    expect(bounds([curve([0, 0])])).toBeNull()
    const [low, high] = bounds([curve([0, 1]), curve([4])])!
    expect(low).toBeLessThan(1)
    expect(high).toBeGreaterThan(4)
  })
})
