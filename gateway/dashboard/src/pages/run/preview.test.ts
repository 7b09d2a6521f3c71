import { describe, expect, it } from 'vitest'
import type { Outcome } from '../../api/types'
import { routeOf } from './preview'

const outcome = (details: unknown) => ({ details }) as Outcome

describe('the route of a preview', () => {
  it('is read from the router’s document', () => {
    const routing = { routing_decision: 'everyday', selected_model: 'compact', selection_status: 'selected', selection_provenance: { state_dependent: false, sampling_seed: 9007199254740993n } }
    expect(routeOf(outcome({ routing }))).toMatchObject({ decision: 'everyday', model: 'compact', status: 'selected', stateDependent: false, seed: '9007199254740993', caveat: null })
  })

  it('takes nothing for granted', () => {
    expect(routeOf(outcome({ routing: { routing_decision: 7, selected_model: ['x'], decision_result: 'odd', selection_provenance: null } }))).toMatchObject({ decision: '7', model: null, stateDependent: null })
    expect(routeOf(outcome(null))).toBeNull()
    expect(routeOf(outcome({ routing: [] }))).toBeNull()
  })
})
