import { sankey, sankeyLinkHorizontal, type SankeyLink, type SankeyNode } from 'd3-sankey'
import { useMemo } from 'react'
import { count, usd } from '../format/numbers'
import { useTexts } from '../i18n/messages'
import './charts.css'
import { COLUMNS, makeFlow, type Band, type Column, type FlowRow, type Measure, type Node } from './flow'
import { messages } from './messages'
import { useWidth } from './useWidth'

const LEAST_WIDTH = 680
const TOP = 24
const COLORS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6']
const OUTCOME_COLOR: Record<string, string> = { right: '--good', wrong: '--bad', failed: '--warn' }
const TITLES = { category: 'benchmark', decision: 'decision', model: 'model', outcome: 'outcome' } as const

type LaidNode = SankeyNode<Node, Band>
type LaidBand = SankeyLink<Node, Band>

/** What a reader picked: the values of the two ends of a band. */
export type Picked = Partial<Record<Column, string | null>>

interface Props {
  rows: FlowRow[]
  measure: Measure
  columns?: readonly Column[] | undefined
  onPick?: ((picked: Picked) => void) | undefined
}

/** The flow of questions from left to right. `onPick` is told the ends of the band that is opened. */
export function Sankey({ rows, measure, columns = COLUMNS, onPick }: Props) {
  const t = useTexts(messages)
  const [ref, space] = useWidth(900)
  const width = Math.max(LEAST_WIDTH, space)
  const flow = useMemo(() => makeFlow(rows, measure, columns), [rows, measure, columns])
  const height = TOP + Math.max(220, 34 * Math.max(...columns.map((column) => flow.nodes.filter((node) => node.column === column).length)))
  const laid = useMemo(() => layOut(flow.nodes, flow.bands, columns, width, height), [flow, columns, width, height])
  const colors = useMemo(() => colorsOf(flow.nodes), [flow.nodes])
  const amount = (value: number) => (measure === 'questions' ? count(value) : usd(value)) ?? ''
  const named = (node: Node) => nameOf(node, t)
  const last = columns.length - 1
  const path = sankeyLinkHorizontal<Node, Band>()
  return (
    <div ref={ref} className="scroll chart" tabIndex={0} role="region" aria-label={t('flowLabel')}>
      <svg width={width} height={height} role="group" aria-label={t('flowLabel')} className="sankey">
        {columns.map((column, index) => (
          <text key={column} x={(index / last) * width} y={14} textAnchor={index === 0 ? 'start' : index === last ? 'end' : 'middle'} className="column" aria-hidden>
            {t(column === 'model' && !columns.includes('outcome') ? 'modelChosen' : TITLES[column])}
          </text>
        ))}
        {laid.links.map((link) => {
          const [from, to] = [link.source as LaidNode, link.target as LaidNode]
          const label = t('band', { from: named(from), to: named(to), amount: amount(link.value) })
          const pick = onPick && from.name !== undefined && to.name !== undefined ? () => onPick({ [from.column]: from.name, [to.column]: to.name }) : undefined
          return (
            <path
              key={`${from.id} ${to.id}`}
              d={path(link) ?? ''}
              strokeWidth={Math.max(1.5, link.width ?? 0)}
              className="band"
              style={{ '--node': `var(${colors.get(to.column === 'outcome' || to.column === 'model' ? to.id : from.id)})` } as React.CSSProperties}
              tabIndex={pick ? 0 : undefined}
              role={pick ? 'button' : 'img'}
              aria-label={label}
              onClick={pick}
              onKeyDown={(event) => {
                if (pick && (event.key === 'Enter' || event.key === ' ')) {
                  event.preventDefault()
                  pick()
                }
              }}
            >
              <title>{label}</title>
            </path>
          )
        })}
        {laid.nodes.map((node) => (
          <g key={node.id} aria-hidden data-node={node.id}>
            <rect x={node.x0} y={node.y0} width={(node.x1 ?? 0) - (node.x0 ?? 0)} height={Math.max(2, (node.y1 ?? 0) - (node.y0 ?? 0))} className="node" style={{ '--node': `var(${colors.get(node.id)})` } as React.CSSProperties} />
            <text {...labelPlace(node, width)}>
              {short(named(node))} · {amount(node.value ?? 0)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  )
}

function layOut(nodes: Node[], bands: Band[], columns: readonly Column[], width: number, height: number): { nodes: LaidNode[]; links: LaidBand[] } {
  const make = sankey<Node, Band>()
    .nodeId((node) => node.id)
    .nodeAlign((node) => columns.indexOf(node.column))
    .nodeSort(null)
    .nodeWidth(10)
    .nodePadding(16)
    .extent([
      [1, TOP],
      [width - 1, height - 4],
    ])
  // The layout writes into what it is given.
  return make({ nodes: nodes.map((node) => ({ ...node })), links: bands.map((band) => ({ ...band })) })
}

function colorsOf(nodes: readonly Node[]): Map<string, string> {
  return new Map(
    nodes.map((node, index) => {
      if (node.column === 'outcome') return [node.id, OUTCOME_COLOR[node.name ?? ''] ?? '--series-6']
      const place = nodes.slice(0, index).filter((other) => other.column === node.column).length
      return [node.id, node.column === 'category' ? '--series-6' : COLORS[place % COLORS.length]!]
    }),
  )
}

function nameOf(node: Node, t: ReturnType<typeof useTexts<typeof messages.en>>): string {
  if (node.name === undefined) return t('others', { n: node.merged })
  if (node.name === null) return t(node.column === 'model' ? 'unknownModel' : node.column === 'decision' ? 'noDecision' : 'noStratum')
  return node.column === 'outcome' && node.name in messages.en ? t(node.name as 'right') : node.name
}

function short(name: string): string {
  return name.length > 26 ? `${name.slice(0, 25)}…` : name
}

function labelPlace(node: LaidNode, width: number) {
  const { x0 = 0, x1 = 0, y0 = 0, y1 = 0 } = node
  const y = (y0 + y1) / 2 + 4
  return x1 > width - 20 ? { x: x0 - 6, y, textAnchor: 'end' as const } : { x: x1 + 6, y, textAnchor: 'start' as const }
}
