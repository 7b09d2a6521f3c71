import { expect, test } from 'vitest'
import { COLUMNS, makeFlow, type FlowRow } from './flow'

const row = (stratum: string, decision: string | null, model: string | null, outcome: string, cells: number, cost = 0, unknown = 0): FlowRow => ({
  benchmark: 'mmlu-pro', stratum, decision, model, outcome, cell_count: cells, known_cost_usd: cost, unknown_cost_count: unknown,
})

test('what flows into a node flows out of it, and all of it starts on the left', () => {
  const rows = [row('math', 'hard', 'large', 'right', 5), row('math', 'hard', 'large', 'wrong', 2), row('law', 'easy', 'small', 'right', 4), row('law', null, null, 'failed', 1)]
  const { nodes, bands } = makeFlow(rows, 'questions')
  const into = (id: string) => bands.filter((band) => band.target === id).reduce((sum, band) => sum + band.value, 0)
  const out = (id: string) => bands.filter((band) => band.source === id).reduce((sum, band) => sum + band.value, 0)
  for (const node of nodes.filter((one) => one.column === 'decision' || one.column === 'model')) expect(into(node.id)).toBe(out(node.id))
  const total = (column: string, side: (id: string) => number) => nodes.filter((one) => one.column === column).reduce((sum, one) => sum + side(one.id), 0)
  expect(total('category', out)).toBe(12)
  expect(total('outcome', into)).toBe(12)
})

test('nothing is lost where small nodes stand together', () => {
  const rows = Array.from({ length: 40 }, (_, n) => row(`subject ${n}`, `decision ${n}`, 'large', 'right', n + 1))
  const { nodes, bands } = makeFlow(rows, 'questions')
  const categories = nodes.filter((node) => node.column === 'category')
  expect(categories).toHaveLength(12)
  expect(categories.at(-1)).toMatchObject({ name: undefined, merged: 29 })
  const sum = bands.filter((band) => band.source.startsWith('category')).reduce((total, band) => total + band.value, 0)
  expect(sum).toBe(820)
})

test('unknown costs are counted beside the widths, never as nothing', () => {
  const flow = makeFlow([row('math', 'hard', 'large', 'right', 5, 0.5), row('math', 'hard', 'large', 'wrong', 2, 0, 2)], 'dollars')
  expect(flow.unknownCosts).toBe(2)
  expect(flow.bands.every((band) => band.value === 0.5)).toBe(true)
})

test('a missing decision and a decision of that name are two nodes', () => {
  const { nodes } = makeFlow([row('math', null, 'a', 'right', 1), row('math', 'null', 'a', 'right', 1)], 'questions', COLUMNS)
  expect(nodes.filter((node) => node.column === 'decision').map((node) => node.name)).toEqual([null, 'null'])
})
