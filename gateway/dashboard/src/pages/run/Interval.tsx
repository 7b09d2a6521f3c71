import { Value } from '../../components/Value'
import { percent } from '../../format/numbers'

/** A share with its interval: the figure, and a line from 0 to 100 % with both drawn. Unknown is not drawn. */
export function Interval({ value, ends }: { value: number | null; ends: number[] | null }) {
  const [low, high] = ends ?? []
  return (
    <span className="interval">
      <Value>{percent(value)}</Value>
      {value !== null && low !== undefined && high !== undefined && (
        <svg viewBox="0 0 100 12" width="100" height="12" aria-hidden="true" className="interval-line">
          <line x1="0" y1="6" x2="100" y2="6" className="axis" />
          <line x1={100 * low} y1="6" x2={100 * high} y2="6" className="range" />
          <circle cx={100 * value} cy="6" r="3.5" />
        </svg>
      )}
    </span>
  )
}
