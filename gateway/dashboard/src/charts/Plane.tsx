import { useMemo, useState } from 'react'
import { percent, usd } from '../format/numbers'
import { useTexts } from '../i18n/messages'
import './charts.css'
import { frontier, steps } from './frontier'
import { placeLabels } from './labels'
import { messages } from './messages'
import { linear, logarithmic, padded, type Scale } from './scale'
import { useWidth } from './useWidth'
import { Scroll } from '../components/Scroll'

/** One target on the plane. */
export interface PlanePoint {
  key: string
  name: string
  kind: 'single' | 'mom'
  /** Share of right answers, in [0, 1]. */
  quality: number
  qualityInterval: readonly [number, number] | null
  /** US dollars; `null` when unknown, and then `why` says why. */
  cost: number | null
  why?: string | undefined
  /** What is known of an unknown cost: at least, at most. */
  costBounds?: readonly [number | null, number | null] | undefined
  /** Whether all others are measured against it. */
  reference?: boolean
}

const HEIGHT = 380
const MARGIN = { left: 52, right: 12, top: 14, bottom: 46 }
const GUTTER = 92

interface Layout {
  x: Scale
  y: Scale
  logarithmic: boolean
  right: number
  gutterAt: number | null
}

/** Quality against cost, with intervals, the frontier, and a gutter for targets whose cost is unknown. */
export function Plane({ points, logScale, onPick }: { points: PlanePoint[]; logScale: boolean; onPick?: (key: string) => void }) {
  const t = useTexts(messages)
  const [ref, width] = useWidth()
  const [open, setOpen] = useState<string | null>(null)
  const layout = useMemo(() => layOut(points, width, logScale), [points, width, logScale])
  const { all, singles } = useMemo(() => fronts(points), [points])
  const best = new Set(all.map((point) => point.key))
  const reference = points.find((point) => point.reference)
  const places = points.map((point) => ({ x: point.cost === null ? (layout.gutterAt ?? 0) : layout.x.at(point.cost), y: layout.y.at(point.quality) }))
  const area = { x: MARGIN.left, y: 0, width: width - MARGIN.left, height: HEIGHT - MARGIN.bottom }
  const spots = placeLabels(places, points.map((point) => point.name), area)
  const shown = points.find((point) => point.key === open)
  return (
    <figure className="chart" ref={ref}>
      <svg width={width} height={HEIGHT} role="group" aria-label={`${t('qualityAxis')} / ${t('costAxis')}`} className="plane">
        <Axes layout={layout} width={width} />
        {reference && reference.cost !== null && <Guides layout={layout} cost={reference.cost} quality={reference.quality} />}
        <polyline className="front front-singles" points={line(singles, layout)} />
        <polyline className="front" points={line(all, layout)} data-testid="frontier" />
        {points.map((point, index) => (
          <g
            key={point.key}
            className={`point ${point.kind} ${best.has(point.key) ? 'best' : 'beaten'} ${point.reference ? 'reference' : ''}`}
            data-point={point.key}
            tabIndex={0}
            role={onPick ? 'button' : 'img'}
            aria-label={t('pointLabel', { name: point.name, quality: percent(point.quality) ?? '', cost: usd(point.cost) ?? t('gutter') })}
            onMouseEnter={() => setOpen(point.key)}
            onMouseLeave={() => setOpen(null)}
            onFocus={() => setOpen(point.key)}
            onBlur={() => setOpen(null)}
            onClick={() => onPick?.(point.key)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' || event.key === ' ') onPick?.(point.key)
            }}
          >
            <Bars point={point} x={places[index]!.x} layout={layout} />
            <Mark kind={point.kind} x={places[index]!.x} y={places[index]!.y} reference={point.reference === true} />
            {spots[index] && (
              <text x={spots[index]!.x} y={spots[index]!.y} textAnchor={spots[index]!.anchor} className="point-name">
                {point.name}
              </text>
            )}
          </g>
        ))}
      </svg>
      {shown && <Card point={shown} best={best.has(shown.key)} />}
      <figcaption className="legend">
        <span><svg width="26" height="10" aria-hidden><line x1="0" x2="26" y1="5" y2="5" className="front" /></svg>{t('frontierAll')}</span>
        {singles.length > 0 && <span><svg width="26" height="10" aria-hidden><line x1="0" x2="26" y1="5" y2="5" className="front front-singles" /></svg>{t('frontierSingles')}</span>}
        {reference && <span><svg width="16" height="16" aria-hidden><circle cx="8" cy="8" r="7" className="ring" /></svg>{t('reference')}</span>}
        <span>{t('beaten')}</span>
        <span>{t('bars')}</span>
      </figcaption>
      <Twin points={points} best={best} />
    </figure>
  )
}

function fronts(points: readonly PlanePoint[]): { all: (PlanePoint & { cost: number })[]; singles: (PlanePoint & { cost: number })[] } {
  const priced = points.filter((point): point is PlanePoint & { cost: number } => point.cost !== null)
  return { all: frontier(priced), singles: frontier(priced.filter((point) => point.kind === 'single')) }
}

function layOut(points: readonly PlanePoint[], width: number, wanted: boolean): Layout {
  const unknown = points.some((point) => point.cost === null)
  const right = width - MARGIN.right - (unknown ? GUTTER : 0)
  const costs = points.flatMap((point) => (point.cost === null ? [] : [point.cost]))
  const qualities = points.flatMap((point) => [point.quality, ...(point.qualityInterval ?? [])])
  const [low, high] = padded(Math.min(...qualities), Math.max(...qualities))
  // Nothing is infinitely far left: a cost of 0 has no place on a logarithmic axis.
  const logScale = wanted && costs.length > 0 && Math.min(...costs) > 0
  const range: [number, number] = [MARGIN.left, right]
  const count = Math.max(2, Math.floor((right - MARGIN.left) / 90))
  const least = costs.length > 0 ? Math.min(...costs) : 0
  const most = costs.length > 0 ? Math.max(...costs) : 1
  const x = logScale ? logarithmic([least / 1.35, most * 1.35], range, count) : linear([0, padded(0, most)[1]], range, count)
  return {
    x,
    y: linear([Math.max(0, low), Math.min(1, high)], [HEIGHT - MARGIN.bottom, MARGIN.top], 6),
    logarithmic: logScale,
    right,
    gutterAt: unknown ? right + GUTTER / 2 : null,
  }
}

function line(points: readonly { quality: number; cost: number }[], layout: Layout): string {
  return steps(points).map(({ cost, quality }) => `${layout.x.at(cost)},${layout.y.at(quality)}`).join(' ')
}

function Axes({ layout, width }: { layout: Layout; width: number }) {
  const t = useTexts(messages)
  const bottom = HEIGHT - MARGIN.bottom
  return (
    <g aria-hidden className="axes">
      {layout.gutterAt !== null && (
        <>
          <rect x={layout.right} y={MARGIN.top} width={GUTTER} height={bottom - MARGIN.top} className="gutter" />
          <text x={layout.gutterAt} y={bottom + 18} textAnchor="middle">{t('gutter')}</text>
        </>
      )}
      {layout.y.ticks.map((tick) => (
        <g key={tick}>
          <line x1={MARGIN.left} x2={layout.right} y1={layout.y.at(tick)} y2={layout.y.at(tick)} className="grid" />
          <text x={MARGIN.left - 8} y={layout.y.at(tick) + 4} textAnchor="end">{percent(tick, 0)}</text>
        </g>
      ))}
      {layout.x.ticks.map((tick) => (
        <g key={tick}>
          <line x1={layout.x.at(tick)} x2={layout.x.at(tick)} y1={bottom} y2={bottom + 5} className="grid" />
          <text x={layout.x.at(tick)} y={bottom + 18} textAnchor="middle">{usd(tick)}</text>
        </g>
      ))}
      <line x1={MARGIN.left} x2={layout.right} y1={bottom} y2={bottom} className="axis" />
      <text x={(MARGIN.left + Math.min(layout.right, width)) / 2} y={HEIGHT - 8} textAnchor="middle" className="axis-name">
        {t(layout.logarithmic ? 'costAxisLog' : 'costAxis')}
      </text>
    </g>
  )
}

/** Better is above the one line, cheaper is left of the other. */
function Guides({ layout, cost, quality }: { layout: Layout; cost: number; quality: number }) {
  return (
    <g aria-hidden>
      <line x1={layout.x.at(cost)} x2={layout.x.at(cost)} y1={MARGIN.top} y2={HEIGHT - MARGIN.bottom} className="guide" />
      <line x1={MARGIN.left} x2={layout.right} y1={layout.y.at(quality)} y2={layout.y.at(quality)} className="guide" />
    </g>
  )
}

function Bars({ point, x, layout }: { point: PlanePoint; x: number; layout: Layout }) {
  const [low, high] = point.qualityInterval ?? [null, null]
  if (low === null || high === null) return null
  const [top, bottom] = [layout.y.at(high), layout.y.at(low)]
  return (
    <g className="whisker" aria-hidden>
      <line x1={x} x2={x} y1={top} y2={bottom} />
      <line x1={x - 5} x2={x + 5} y1={top} y2={top} />
      <line x1={x - 5} x2={x + 5} y1={bottom} y2={bottom} />
    </g>
  )
}

function Mark({ kind, x, y, reference }: { kind: 'single' | 'mom'; x: number; y: number; reference: boolean }) {
  return (
    <>
      <circle cx={x} cy={y} r={15} className="touch" />
      {reference && <circle cx={x} cy={y} r={11} className="ring" />}
      {kind === 'mom' ? (
        <path d={`M${x} ${y - 8}L${x + 8} ${y}L${x} ${y + 8}L${x - 8} ${y}Z`} className="mark" />
      ) : (
        <circle cx={x} cy={y} r={6} className="mark" />
      )}
    </>
  )
}

function Card({ point, best }: { point: PlanePoint; best: boolean }) {
  const t = useTexts(messages)
  const [low, high] = point.qualityInterval ?? [null, null]
  return (
    <div className="chart-card" aria-hidden>
      <strong>{point.name}</strong>
      <span>{`${t('quality')} ${percent(point.quality) ?? ''}${low === null || high === null ? '' : ` (${t('range', { low: percent(low) ?? '', high: percent(high) ?? '' })})`}`}</span>
      <span>{`${t('cost')} ${usd(point.cost) ?? `${t('gutter')}${point.why ? `: ${point.why}` : ''}`}`}</span>
      {point.cost !== null && best && <span>{t('onFrontier')}</span>}
    </div>
  )
}

/** The chart for those who do not see it, and for those who want the figures. */
function Twin({ points, best }: { points: PlanePoint[]; best: Set<string> }) {
  const t = useTexts(messages)
  return (
    <details className="twin">
      <summary>{t('asTable')}</summary>
      <Scroll label={t('asTable')}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">{t('quality')}</th>
              <th scope="col" className="num">{t('interval')}</th>
              <th scope="col" className="num">{t('cost')}</th>
              <th scope="col">{t('onFrontier')}</th>
            </tr>
          </thead>
          <tbody>
            {points.map((point) => (
              <tr key={point.key}>
                <th scope="row">{point.name}</th>
                <td className="num">{percent(point.quality)}</td>
                <td className="num">
                  {point.qualityInterval ? t('range', { low: percent(point.qualityInterval[0]) ?? '', high: percent(point.qualityInterval[1]) ?? '' }) : '—'}
                </td>
                <td className="num">{point.cost === null ? <UnknownCost point={point} /> : usd(point.cost)}</td>
                <td>{point.cost === null ? '—' : t(best.has(point.key) ? 'yes' : 'no')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  )
}

function UnknownCost({ point }: { point: PlanePoint }) {
  const t = useTexts(messages)
  return (
    <span className="unknown wrap">
      {t('gutter')}
      {point.why ? `: ${point.why}` : ''}
    </span>
  )
}
