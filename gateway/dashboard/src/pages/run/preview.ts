// What a router said it would do with a question. The document is the router's: nothing in it is taken for granted.
import type { Outcome } from '../../api/types'

type Unknown = Readonly<Record<string, unknown>>

export interface Route {
  decision: string | null
  model: string | null
  status: string | null
  method: string | null
  reason: string | null
  configHash: string | null
  mode: string | null
  /** Whether the choice depends on what the router remembers; then no replay can repeat it. */
  stateDependent: boolean | null
  stateHash: string | null
  capturedAt: string | null
  sampled: boolean | null
  seed: string | null
  caveat: string | null
}

/** The route of an outcome of a preview; `null` when it has none. */
export function routeOf(outcome: Outcome): Route | null {
  const routing = member(outcome.details, 'routing')
  if (!isObject(routing)) return null
  const provenance = member(routing, 'selection_provenance')
  return {
    decision: text(routing, 'routing_decision') ?? text(member(routing, 'decision_result'), 'decision_name'),
    model: text(routing, 'selected_model'),
    status: text(routing, 'selection_status'),
    method: text(routing, 'selection_method'),
    reason: text(routing, 'selection_reason'),
    configHash: text(routing, 'config_hash'),
    mode: text(provenance, 'mode'),
    stateDependent: flag(provenance, 'state_dependent'),
    stateHash: text(provenance, 'state_hash'),
    capturedAt: text(provenance, 'captured_at'),
    sampled: flag(provenance, 'sampled'),
    seed: text(provenance, 'sampling_seed'),
    caveat: text(provenance, 'caveat'),
  }
}

function isObject(value: unknown): value is Unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined
}

function text(value: unknown, name: string): string | null {
  const found = member(value, name)
  if (typeof found === 'number' || typeof found === 'bigint') return String(found)
  return typeof found === 'string' && found !== '' ? found : null
}

function flag(value: unknown, name: string): boolean | null {
  const found = member(value, name)
  return typeof found === 'boolean' ? found : null
}
