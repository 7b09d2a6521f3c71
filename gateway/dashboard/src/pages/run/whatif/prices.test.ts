import { describe, expect, it } from 'vitest'
import type { Target } from '../../../api/types'
import { changedPrices, frozenPrices, isPrice, savedShare, typedOf } from './prices'

const price = { input: 1, cached_input: 0.1, cache_write: 1.25, output: 0.000001, cache_write_1h: 2 }
const targets = [{ id: 'a', prices: { m: price } }, { id: 'b', prices: { m: { ...price, input: 9 }, n: price } }, { id: 'c' }] as unknown as Target[]

describe('prices', () => {
  it('are those of the plan, the first target first', () => {
    const frozen = frozenPrices(targets)
    expect(Object.keys(frozen)).toEqual(['m', 'n'])
    expect(frozen.m!.input).toBe(1)
    expect(typedOf(frozen).m).toEqual({ input: '1', cached_input: '0.1', cache_write: '1.25', output: '0.000001' })
  })
  it('are asked for only where they were changed, the long class as it was', () => {
    const frozen = frozenPrices(targets)
    const typed = typedOf(frozen)
    expect(changedPrices(typed, frozen)).toEqual({})
    typed.n!.input = ' 2.5 '
    expect(changedPrices(typed, frozen)).toEqual({ n: { ...price, input: 2.5 } })
  })
  it('are not asked for while one is none', () => {
    const frozen = frozenPrices(targets)
    expect(changedPrices({ ...typedOf(frozen), m: { input: 'free', cached_input: '0', cache_write: '0', output: '0' } }, frozen)).toBeNull()
  })
  it.each(['', '-1', '1e3', '0.0000001', '1000001', 'x', '1,5'])('%j is no price', (text) => expect(isPrice(text)).toBe(false))
  it.each(['0', '1000000', '0.075', '3.000000'])('%j is a price', (text) => expect(isPrice(text)).toBe(true))
})

it('a saving needs two known costs', () => {
  expect(savedShare(1, 4)).toBe(0.75)
  expect(savedShare(null, 4)).toBeNull()
  expect(savedShare(1, null)).toBeNull()
  expect(savedShare(1, 0)).toBeNull()
})
