// What a grader left in its details, read with care: others write graders, too, so each part is there or it is not.

export interface Ratio {
  part: number
  of: number
}
export interface Step {
  step: string
  status: string
  test: string | null
  message: string
}
export interface Grading {
  /** Hidden tests passed, of all. */
  tests: Ratio | null
  /** Steps passed, of all, and each one that was come to. */
  steps: Ratio | null
  stepList: Step[]
  /** Grids right, of all. */
  pairs: Ratio | null
  /** Checks of an agent's work, by kind. */
  checks: [string, Ratio][]
  /** What failed, the first test that did, and what was said about it. */
  reason: string | null
  failedTest: string | null
  message: string | null
  /** A judge's verdict and why. */
  verdict: string | null
  explanation: string | null
}

const CHECKS = ['action_checks', 'communicate_checks', 'env_assertions', 'nl_assertions']

export function gradingOf(details: unknown): Grading {
  const found = membersOf(details)
  const steps = Array.isArray(found.steps) ? found.steps.map(membersOf) : []
  return {
    tests: ratio(found.tests_passed, found.tests_total),
    steps: ratio(found.steps_passed, found.steps_total),
    stepList: steps.map((step) => ({ step: wordOf(step.step) ?? '', status: wordOf(step.status) ?? '', test: wordOf(step.test), message: wordOf(step.message) ?? '' })),
    pairs: ratio(found.pairs_correct, found.pairs_total),
    checks: CHECKS.flatMap((name): [string, Ratio][] => {
      const check = membersOf(found[name])
      const known = ratio(check.met, check.total)
      return known ? [[name, known]] : []
    }),
    reason: wordOf(found.reason) ?? wordOf(found.problem),
    failedTest: wordOf(found.failed_test),
    message: wordOf(found.message),
    verdict: wordOf(found.verdict),
    explanation: wordOf(found.explanation),
  }
}

/** Whether there is anything to show. */
export function saysSomething(grading: Grading): boolean {
  return Object.values(grading).some((part) => (Array.isArray(part) ? part.length > 0 : part !== null))
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function ratio(part: unknown, of: unknown): Ratio | null {
  return typeof part === 'number' && typeof of === 'number' && of > 0 ? { part, of } : null
}

function wordOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : null
}
