// From counted cells to the nodes and bands of the decision flow.

/** Cells that went the same way, as the service counts them. */
export interface FlowRow {
  benchmark: string
  stratum: string | null
  decision: string | null
  model: string | null
  outcome: string
  cell_count: number
  known_cost_usd: number
  unknown_cost_count: number
}

export const COLUMNS = ['category', 'decision', 'model', 'outcome'] as const
export type Column = (typeof COLUMNS)[number]
export type Measure = 'questions' | 'dollars'

export interface Node {
  id: string
  column: Column
  /** What the rows say; `null` for none, `undefined` where several small ones stand together. */
  name: string | null | undefined
  /** How many values stand together here; 1 for a value of its own. */
  merged: number
}
export interface Band {
  source: string
  target: string
  value: number
}
export interface Flow {
  nodes: Node[]
  bands: Band[]
  /** Subject calls whose cost is unknown, and which are in no width when dollars are measured. */
  unknownCosts: number
}

/** The most nodes in a column; what is smaller than the rest stands together in one. */
const MOST = 12
// What a row says in a column. With several benchmarks, categories carry their benchmark's name.
const KEY: Record<Column, (row: FlowRow, several: boolean) => string | null> = {
  category: (row, several) => (several ? row.benchmark + (row.stratum ? ` / ${row.stratum}` : '') : (row.stratum ?? row.benchmark)),
  decision: (row) => row.decision,
  model: (row) => row.model,
  outcome: (row) => row.outcome,
}
const OUTCOME_ORDER = ['right', 'wrong', 'ungraded', 'failed', 'cancelled', 'sent_unknown', 'pending']

function hasSeveralBenchmarks(rows: readonly FlowRow[]): boolean {
  return new Set(rows.map((row) => row.benchmark)).size > 1
}

/** Nodes and bands. The width of a band is the questions, or the known dollars, that went along it. */
export function makeFlow(rows: readonly FlowRow[], measure: Measure, columns: readonly Column[] = COLUMNS): Flow {
  const several = hasSeveralBenchmarks(rows)
  const weight = (row: FlowRow) => (measure === 'questions' ? row.cell_count : row.known_cost_usd)
  const columnNodes = new Map(columns.map((column) => [column, columnOf(column, rows, weight, several)]))
  const widths = new Map<string, Band>()
  for (const row of rows) {
    if (weight(row) <= 0) continue
    const way = columns.map((column) => columnNodes.get(column)!.idOf(KEY[column](row, several)))
    for (let n = 1; n < way.length; n += 1) {
      const [source, target] = [way[n - 1]!, way[n]!]
      const key = `${source}\n${target}`
      const band = widths.get(key) ?? { source, target, value: 0 }
      band.value += weight(row)
      widths.set(key, band)
    }
  }
  return {
    nodes: columns.flatMap((column) => columnNodes.get(column)!.nodes),
    bands: [...widths.values()],
    unknownCosts: rows.reduce((sum, row) => sum + row.unknown_cost_count, 0),
  }
}

function columnOf(column: Column, rows: readonly FlowRow[], weight: (row: FlowRow) => number, several: boolean) {
  const sums = new Map<string | null, number>()
  for (const row of rows) {
    const key = KEY[column](row, several)
    sums.set(key, (sums.get(key) ?? 0) + weight(row))
  }
  const found = [...sums].filter(([, sum]) => sum > 0)
  found.sort(column === 'outcome' ? byOutcome : ([, one], [, other]) => other - one)
  const own = found.length > MOST ? found.slice(0, MOST - 1) : found
  const nodes: Node[] = own.map(([name], index) => ({ id: `${column}:${index}`, column, name, merged: 1 }))
  const ids = new Map(own.map(([value], index) => [value, `${column}:${index}`]))
  const rest = `${column}:rest`
  if (own.length < found.length) nodes.push({ id: rest, column, name: undefined, merged: found.length - own.length })
  return { nodes, idOf: (value: string | null) => ids.get(value) ?? rest }
}

function byOutcome([one]: [string | null, number], [other]: [string | null, number]): number {
  return OUTCOME_ORDER.indexOf(one ?? '') - OUTCOME_ORDER.indexOf(other ?? '')
}
