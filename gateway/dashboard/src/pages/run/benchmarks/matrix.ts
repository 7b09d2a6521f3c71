// Figures of benchmarks and targets as rows and columns.
import type { Metrics } from '../../../api/types'

export const MEASURES = ['accuracy', 'cost', 'latency', 'failures'] as const
export type Measure = (typeof MEASURES)[number]

/** A figure of a cell; `null` when it is unknown. */
export function figureOf(measure: Measure, row: Metrics): number | null {
  if (measure === 'accuracy') return row.accuracy
  if (measure === 'cost') return row.cost_usd
  if (measure === 'latency') return row.latency_p50_s
  return row.failed
}

export interface Line {
  benchmark: string
  /** By target id. */
  cells: Map<string, Metrics>
}

/** The rows of the report by benchmark, in its order. */
export function linesOf(rows: readonly Metrics[]): Line[] {
  const lines = new Map<string, Line>()
  for (const row of rows) {
    const benchmark = row.benchmark ?? ''
    const line = lines.get(benchmark) ?? { benchmark, cells: new Map<string, Metrics>() }
    line.cells.set(row.target_id ?? row.id, row)
    lines.set(benchmark, line)
  }
  return [...lines.values()]
}

/** How a target's figure differs from the reference's; `null` when either is unknown. */
export function difference(measure: Measure, line: Line, target: string, reference: string): number | null {
  const [own, other] = [target, reference].map((name) => {
    const row = line.cells.get(name)
    return row ? figureOf(measure, row) : null
  })
  return own === null || other === null || own === undefined || other === undefined ? null : own - other
}

/** The lines with what got worst first: accuracy that fell, anything else that rose. Lines without a known difference come last. */
export function byLoss(measure: Measure, lines: readonly Line[], reference: string): Line[] {
  const sign = measure === 'accuracy' ? 1 : -1
  const worst = (line: Line) => {
    const known = [...line.cells.keys()].filter((target) => target !== reference).map((target) => difference(measure, line, target, reference))
    return Math.min(...known.filter((value) => value !== null).map((value) => sign * value), Infinity)
  }
  return lines.map((line) => ({ line, loss: worst(line) })).sort((one, other) => (one.loss === other.loss ? 0 : one.loss - other.loss)).map(({ line }) => line)
}
