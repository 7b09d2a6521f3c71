import { useTexts } from '../i18n/messages'
import './charts.css'
import { messages } from './messages'
import { linear, padded } from './scale'
import { useWidth } from './useWidth'

/** One line of the chart: a difference with its interval, or the reason why there is none. */
interface ForestRow {
  key: string
  name: string
  value: number | null
  interval: readonly [number, number] | null
  /** Whether it is established that this is above or below zero; a point that is `open` is drawn hollow. */
  tone: 'up' | 'down' | 'open'
  why?: string | undefined
}

const ROW = 34
const TOP = 8
const AXIS = 26

interface Props {
  title: string
  rows: ForestRow[]
  show: (value: number) => string | null
  /** What is beyond is cut, and an arrow says so: one interval without bounds must not flatten all others. */
  limits?: readonly [number, number]
}

/** Differences in the order given, each with its interval, against a line at zero; joined, so that a trend can be seen. */
export function Forest({ title, rows, show, limits }: Props) {
  const t = useTexts(messages)
  const [ref, width] = useWidth(420)
  const values = rows.flatMap((row) => [...(row.interval ?? []), ...(row.value === null ? [] : [row.value])])
  const [least, most] = limits ?? [-Infinity, Infinity]
  const [low, high] = padded(Math.max(least, Math.min(0, ...values)), Math.min(most, Math.max(0, ...values)), 0.08)
  const nameWidth = Math.min(190, Math.max(96, width * 0.34))
  const scale = linear([low, high], [nameWidth + 8, width - 14], Math.max(2, Math.floor((width - nameWidth) / 80)))
  const height = TOP + rows.length * ROW + AXIS
  const middle = (index: number) => TOP + index * ROW + ROW / 2
  const bottom = TOP + rows.length * ROW
  const known = rows.flatMap((row, index) => (row.value === null ? [] : [`${scale.at(row.value)},${middle(index)}`]))
  return (
    <figure className="chart" ref={ref}>
      <p className="chart-title">{title}</p>
      <svg width={width} height={height} role="group" aria-label={title} className="forest">
        <g aria-hidden className="axes">
          {scale.ticks.map((tick) => (
            <g key={tick}>
              <line x1={scale.at(tick)} x2={scale.at(tick)} y1={TOP} y2={bottom} className="grid" />
              <text x={scale.at(tick)} y={bottom + 17} textAnchor="middle">{show(tick)}</text>
            </g>
          ))}
          <line x1={scale.at(0)} x2={scale.at(0)} y1={TOP} y2={bottom} className="zero" />
          <polyline points={known.join(' ')} className="trend" />
        </g>
        {rows.map((row, index) => (
          <Line key={row.key} row={row} y={middle(index)} at={(value) => scale.at(Math.min(high, Math.max(low, value)))} cut={(value) => value < low || value > high} start={nameWidth + 8} nameWidth={nameWidth} show={show} unknown={t('gutter')} />
        ))}
      </svg>
    </figure>
  )
}

function Line({
  row,
  y,
  at,
  cut,
  start,
  nameWidth,
  show,
  unknown,
}: {
  row: ForestRow
  y: number
  at: (value: number) => number
  cut: (value: number) => boolean
  start: number
  nameWidth: number
  show: (value: number) => string | null
  unknown: string
}) {
  const t = useTexts(messages)
  const most = Math.floor(nameWidth / 6.8)
  const name = row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name
  const interval = row.interval && `${show(row.interval[0]) ?? ''} – ${show(row.interval[1]) ?? ''}`
  const label =
    row.value === null ? `${row.name}: ${row.why ?? unknown}${interval ? ` (${interval})` : ''}` : t('rowLabel', { name: row.name, value: show(row.value) ?? '', interval: interval ?? t('none') })
  return (
    <g role="img" aria-label={label} className={`row ${row.tone}`}>
      <title>{label}</title>
      <text x={0} y={y + 4} className="row-name">{name}</text>
      {row.interval && (
        <g className="whisker">
          <line x1={at(row.interval[0])} x2={at(row.interval[1])} y1={y} y2={y} />
          <End x={at(row.interval[0])} y={y} cut={cut(row.interval[0])} side={-1} />
          <End x={at(row.interval[1])} y={y} cut={cut(row.interval[1])} side={1} />
        </g>
      )}
      {row.value === null && !row.interval && (
        <text x={start} y={y + 4} className="row-unknown">{unknown}</text>
      )}
      {row.value !== null && <circle cx={at(row.value)} cy={y} r={5.5} className="mark" />}
    </g>
  )
}

/** The end of an interval: a stroke, or an arrow where the interval goes on. */
function End({ x, y, cut, side }: { x: number; y: number; cut: boolean; side: 1 | -1 }) {
  if (cut) return <path d={`M${x + side * 4} ${y}L${x - side * 4} ${y - 5}V${y + 5}Z`} className="cut" />
  return <line x1={x} x2={x} y1={y - 5} y2={y + 5} />
}
