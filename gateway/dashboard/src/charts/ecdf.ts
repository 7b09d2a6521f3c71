/** A point of a curve: a value, and the share of all values that are not greater. */
export interface CurvePoint {
  value: number
  share: number
}

/** The curve through evenly spaced quantiles from 0 to 1; of equal values only the corners stay. */
export function curve(quantiles: readonly number[]): CurvePoint[] {
  const last = quantiles.length - 1
  const points = quantiles.map((value, index) => ({ value, share: last === 0 ? 1 : index / last }))
  return points.filter(({ value }, index) => points[index - 1]?.value !== value || points[index + 1]?.value !== value)
}

/** The bounds of a logarithmic axis over the values; `null` when no value is above 0, for then there is no such axis. */
export function bounds(curves: readonly (readonly CurvePoint[])[]): [number, number] | null {
  const values = curves.flatMap((points) => points.map(({ value }) => value)).filter((value) => value > 0)
  if (values.length === 0) return null
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return [low / 1.1, high * 1.1]
}
