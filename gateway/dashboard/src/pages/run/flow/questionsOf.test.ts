import { describe, expect, it } from 'vitest'
import { questionsOf } from './questionsOf'

describe('questionsOf', () => {
  it('names the two ends of a band as filters', () => {
    expect(questionsOf('mixture', { decision: 'doubtful', model: 'frontier' })).toMatchObject({ target: 'mixture', decision: 'doubtful', model: 'frontier', correct: undefined })
    expect(questionsOf(undefined, { model: 'a', outcome: 'wrong' })).toMatchObject({ model: 'a', status: 'completed', correct: false })
    expect(questionsOf('a', { model: null, outcome: 'failed' })).toMatchObject({ model: undefined, status: 'failed', correct: undefined })
  })

  it('leaves out an outcome that no filter knows', () => {
    expect(questionsOf('a', { model: 'a', outcome: 'ungraded' }).status).toBeUndefined()
  })
})
