import { expect, test } from 'vitest'
import { frontier, steps } from './frontier'
import { placeLabels } from './labels'

const point = (id: string, cost: number, quality: number) => ({ id, cost, quality })

test('the frontier has what nobody beats, cheapest first', () => {
  const points = [point('dear', 10, 0.9), point('beaten', 5, 0.6), point('cheap', 1, 0.5), point('middle', 4, 0.7)]
  expect(frontier(points).map((one) => one.id)).toEqual(['cheap', 'middle', 'dear'])
})

test('equal points do not beat each other, and a dearer equal one is beaten', () => {
  expect(frontier([point('a', 1, 0.5), point('b', 1, 0.5)]).map((one) => one.id)).toEqual(['a', 'b'])
  expect(frontier([point('a', 1, 0.5), point('b', 2, 0.5)]).map((one) => one.id)).toEqual(['a'])
})

test('the step line goes right before it goes up', () => {
  expect(steps([point('a', 1, 0.5), point('b', 3, 0.8)]).map(({ cost, quality }) => [cost, quality])).toEqual([
    [1, 0.5],
    [3, 0.5],
    [3, 0.8],
  ])
})

test('labels lie inside the area and never over each other', () => {
  const points = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => ({ x: 100 + n * 4, y: 100 + n * 3 }))
  const area = { x: 0, y: 0, width: 300, height: 200 }
  const spots = placeLabels(points, points.map((_, n) => `router number ${n}`), area)
  expect(spots.some((spot) => spot !== null)).toBe(true)
  expect(spots.some((spot) => spot === null)).toBe(true)
  expect(placeLabels([{ x: 295, y: 100 }], ['at the edge'], area)[0]?.anchor).toBe('end')
})
