import { useTexts } from '../i18n/messages'
import './charts.css'
import { messages } from './messages'
import { linear, padded } from './scale'
import { useWidth } from './useWidth'

/** One line of the chart: a difference with its interval, or the reason why there is none. */
export interface ForestRow {
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

/** Differences in the order given, each with its interval, against a line at zero; joined, so that a trend can be seen. */
export function Forest({ title, rows, show }: { title: string; rows: ForestRow[]; show: (value: number) => string | null }) {
  const t = useTexts(messages)
  const [ref, width] = useWidth(420)
  const values = rows.flatMap((row) => [...(row.interval ?? []), ...(row.value === null ? [] : [row.value])])
  const [low, high] = padded(Math.min(0, ...values), Math.max(0, ...values), 0.08)
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
          <Line key={row.key} row={row} y={middle(index)} at={scale.at} start={nameWidth + 8} nameWidth={nameWidth} show={show} unknown={t('gutter')} />
        ))}
      </svg>
    </figure>
  )
}

function Line({
  row,
  y,
  at,
  start,
  nameWidth,
  show,
  unknown,
}: {
  row: ForestRow
  y: number
  at: (value: number) => number
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
          <line x1={at(row.interval[0])} x2={at(row.interval[0])} y1={y - 5} y2={y + 5} />
          <line x1={at(row.interval[1])} x2={at(row.interval[1])} y1={y - 5} y2={y + 5} />
        </g>
      )}
      {row.value === null && !row.interval && (
        <text x={start} y={y + 4} className="row-unknown">{unknown}</text>
      )}
      {row.value !== null && <circle cx={at(row.value)} cy={y} r={5.5} className="mark" />}
    </g>
  )
}
