// The interval of a weighted mean of shares.

export interface Part {
  /** Weight of the benchmark; only ratios count. */
  weight: number
  /** Share of right answers, in [0, 1], with its 95 % interval. */
  share: number
  low: number
  high: number
}

/**
 * The 95 % interval of the weighted mean of independent shares, from the interval of each (MOVER: each end moves by the
 * root of the summed squares of the parts' own distances; Zou and Donner, Statistics in Medicine 27, 2008). With one part it
 * is that part's own interval. `null` without weight.
 */
export function weightedInterval(parts: readonly Part[]): [number, number] | null {
  const sum = parts.reduce((total, part) => total + part.weight, 0)
  if (!(sum > 0)) return null
  const mean = parts.reduce((total, part) => total + (part.weight / sum) * part.share, 0)
  const below = Math.sqrt(parts.reduce((total, part) => total + ((part.weight / sum) * (part.share - part.low)) ** 2, 0))
  const above = Math.sqrt(parts.reduce((total, part) => total + ((part.weight / sum) * (part.high - part.share)) ** 2, 0))
  return [Math.max(0, mean - below), Math.min(1, mean + above)]
}
