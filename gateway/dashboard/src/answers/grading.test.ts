import { describe, expect, it } from 'vitest'
import { gradingOf, saysSomething } from './grading'

describe('what a grader left', () => {
  it('is tests passed and the first that failed, for programs', () => {
    const found = gradingOf({ tests_passed: 3, tests_total: 9, reason: 'wrong_output', failed_test: 3, message: 'differs', sandbox: 'bwrap' })
    expect(found.tests).toEqual({ part: 3, of: 9 })
    expect([found.reason, found.failedTest, found.message]).toEqual(['wrong_output', '3', 'differs'])
  })
  it('is each step, for programs in steps', () => {
    const found = gradingOf({ steps_passed: 1, steps_total: 3, steps: [{ step: '12.1', status: 'passed' }, { step: '12.2', status: 'error', test: 0, message: 'NameError' }] })
    expect(found.steps).toEqual({ part: 1, of: 3 })
    expect(found.stepList[1]).toEqual({ step: '12.2', status: 'error', test: '0', message: 'NameError' })
  })
  it('is the checks of an agent', () => {
    expect(gradingOf({ action_checks: { met: 2, total: 5 }, env_assertions: 'none' }).checks).toEqual([['action_checks', { part: 2, of: 5 }]])
  })
  it.each([null, undefined, 'text', [1], 7, { tests_passed: '3', tests_total: 0, steps: 'x' }])('is nothing in %j', (details) => {
    expect(saysSomething(gradingOf(details))).toBe(false)
  })
})
