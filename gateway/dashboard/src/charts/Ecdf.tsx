import { percent } from '../format/numbers'
import { duration } from '../format/time'
import { visible } from '../format/visible'
import { useTexts } from '../i18n/messages'
import './charts.css'
import { bounds, type CurvePoint, curve } from './ecdf'
import { messages } from './messages'
import { linear, logarithmic } from './scale'
import { useWidth } from './useWidth'

/** One curve: quantiles 0, 0.01, … 1 in seconds, and where its median and its 95th percentile lie. */
export interface EcdfLine {
  key: string
  name: string
  quantiles: readonly number[]
  median: number | null
  high: number | null
}

const HEIGHT = 250
const MARGIN = { left: 48, right: 16, top: 10, bottom: 42 }
/** Lines are told apart by dashes and marks, too, not by colour alone. */
const DASHES = ['', '7 4', '2 3', '10 3 2 3', '14 4', '4 2 1 2']
const KINDS = DASHES.length

/** Which share of the answers took no longer than a time, a line a target; the time axis is logarithmic. */
export function Ecdf({ title, lines }: { title: string; lines: readonly EcdfLine[] }) {
  const t = useTexts(messages)
  const [ref, width] = useWidth(520)
  const drawn = lines.map((line) => ({ line, points: curve(line.quantiles) })).filter(({ points }) => points.length > 0)
  const ends = bounds(drawn.map(({ points }) => points))
  if (!ends) return null
  const x = logarithmic(ends, [MARGIN.left, width - MARGIN.right], Math.max(2, Math.floor(width / 110)))
  const y = linear([0, 1], [HEIGHT - MARGIN.bottom, MARGIN.top], 4)
  const at = (value: number) => x.at(Math.max(value, ends[0]))
  const path = (points: readonly CurvePoint[]) => points.map(({ value, share }) => `${at(value).toFixed(1)},${y.at(share).toFixed(1)}`).join(' ')
  return (
    <figure className="chart ecdf" ref={ref}>
      <p className="chart-title">{title}</p>
      <svg width={width} height={HEIGHT} role="img" aria-label={t('ecdfLabel', { title, names: drawn.map(({ line }) => visible(line.name)).join(', ') })}>
        <g aria-hidden className="axes">
          {y.ticks.map((tick) => (
            <g key={tick}>
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={y.at(tick)} y2={y.at(tick)} className="grid" />
              <text x={MARGIN.left - 6} y={y.at(tick) + 4} textAnchor="end">{percent(tick, 0)}</text>
            </g>
          ))}
          {x.ticks.map((tick) => (
            <g key={tick}>
              <line x1={x.at(tick)} x2={x.at(tick)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} className="grid" />
              <text x={x.at(tick)} y={HEIGHT - MARGIN.bottom + 16} textAnchor="middle">{duration(tick)}</text>
            </g>
          ))}
          <text x={(MARGIN.left + width - MARGIN.right) / 2} y={HEIGHT - 6} textAnchor="middle" className="axis-name">{t('timeAxis')}</text>
        </g>
        {drawn.map(({ line, points }, index) => (
          <g key={line.key} className={`line kind-${index % KINDS}`}>
            <polyline points={path(points)} strokeDasharray={DASHES[index % KINDS]} />
            {line.median !== null && <circle cx={at(line.median)} cy={y.at(0.5)} r={4.5} className="mark" />}
            {line.high !== null && <rect x={at(line.high) - 4} y={y.at(0.95) - 4} width={8} height={8} className="mark" />}
          </g>
        ))}
      </svg>
      <figcaption className="legend ecdf">
        {drawn.map(({ line }, index) => (
          <span key={line.key} className={`line kind-${index % KINDS}`}>
            <svg width="30" height="10" aria-hidden><line x1="0" x2="30" y1="5" y2="5" strokeDasharray={DASHES[index % KINDS]} /></svg>
            {visible(line.name)}
          </span>
        ))}
        <span><svg width="10" height="10" aria-hidden><circle cx="5" cy="5" r="4.5" className="sign" /></svg>p50</span>
        <span><svg width="10" height="10" aria-hidden><rect x="1" y="1" width="8" height="8" className="sign" /></svg>p95</span>
      </figcaption>
    </figure>
  )
}
