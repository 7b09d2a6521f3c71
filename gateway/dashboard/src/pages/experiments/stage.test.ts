import { describe, expect, it } from 'vitest'
import type { Member } from './queries'
import { grouped, referenceOf, stageOf } from './stage'

const member = (role: string, id: string, status = 'completed') => ({ role, run_id: id, hypothesis: null, run: { id, status } }) as unknown as Member

describe('an experiment', () => {
  it('says what it waits for', () => {
    expect(stageOf([])).toBe('baseline')
    expect(stageOf([member('smoke', 's')])).toBe('baseline')
    expect(stageOf([member('baseline', 'b')])).toBe('initial')
    expect(stageOf([member('initial', 'i'), member('baseline', 'b')])).toBe('candidate')
    expect(stageOf([member('candidate', 'c'), member('initial', 'i'), member('baseline', 'b')])).toBe('review')
    expect(stageOf([member('candidate', 'c', 'running'), member('baseline', 'b')])).toBe('active')
  })

  it('groups runs by their part, oldest first', () => {
    const newestFirst = [member('recovery', 'r'), member('candidate', 'c2'), member('candidate', 'c1'), member('baseline', 'b')]
    const { main, rest } = grouped(newestFirst)
    expect(main.candidate.map(({ run_id }) => run_id)).toEqual(['c1', 'c2'])
    expect(rest.map(({ run_id }) => run_id)).toEqual(['r'])
    expect(referenceOf(newestFirst)?.run_id).toBe('b')
  })
})
