import { expect, test } from 'vitest'
import { equalPlaces, planChanges } from './planDiff'

const plan = {
  name: 'v1', dataset: { sha256: 'aa', case_count: 5 }, sampling: { temperature: 0, top_p: 1 }, limits: { concurrency: 4 },
  targets: [{ id: 'router', kind: 'mom', config_hash: 'one', prices: { large: { input: 3, output: 15 } } }, { id: 'small', kind: 'single' }],
}

test('only what differs is listed, under its group and with its path', () => {
  const other = structuredClone(plan)
  other.name = 'v2'
  other.sampling.temperature = 0.7
  other.targets[0]!.config_hash = 'two'
  other.targets[0]!.prices!.large.output = 12
  expect(planChanges(plan, other)).toEqual([
    { group: 'sampling', path: 'sampling.temperature', before: '0', after: '0.7' },
    { group: 'prices', path: 'targets.router.prices.large.output', before: '15', after: '12' },
    { group: 'targets', path: 'targets.router.config_hash', before: 'one', after: 'two' },
    { group: 'other', path: 'name', before: 'v1', after: 'v2' },
  ])
})

test('the order of targets and of members is no difference', () => {
  const turned = { targets: [...plan.targets].reverse(), limits: plan.limits, sampling: { top_p: 1, temperature: 0 }, dataset: plan.dataset, name: 'v1' }
  expect(planChanges(plan, turned)).toEqual([])
  expect(equalPlaces(plan, turned)).toBeGreaterThan(8)
})

test('a target on one side only is one change', () => {
  const less = { ...plan, targets: plan.targets.slice(0, 1) }
  const [change, ...rest] = planChanges(plan, less)
  expect(rest).toEqual([])
  expect(change).toMatchObject({ group: 'targets', path: 'targets.small', after: null })
})

test('nothing and null are the same, zero and nothing are not', () => {
  expect(planChanges({ a: null, b: { c: null } }, { b: {} })).toEqual([])
  expect(planChanges({ limits: { x: 0 } }, { limits: {} })).toEqual([{ group: 'limits', path: 'limits.x', before: '0', after: null }])
})

test('rules of a recipe go by their names', () => {
  const recipe = (model: string) => ({ recipes: { router: { routing: { decisions: [{ name: 'everyday', model }, { name: 'doubtful', model: 'large' }] } } } })
  expect(planChanges(recipe('small'), recipe('large'))).toEqual([
    { group: 'recipe', path: 'recipes.router.routing.decisions.everyday.model', before: 'small', after: 'large' },
  ])
})
