// Axes: where a value lies, and which values are worth a line.

export interface Scale {
  /** The place of `value` in pixels. */
  at: (value: number) => number
  ticks: number[]
}

/** `low` and `high` moved apart by `share` of their distance; values that are equal get room around them. */
export function padded(low: number, high: number, share = 0.06): [number, number] {
  const room = high > low ? (high - low) * share : Math.max(Math.abs(low) * share, 0.01)
  return [low - room, high + room]
}

/** An even axis over `domain` that covers `range` in pixels. */
export function linear(domain: readonly [number, number], range: readonly [number, number], count = 5): Scale {
  const [low, high] = domain
  const [from, to] = range
  const width = high - low || 1
  return { at: (value) => from + ((value - low) / width) * (to - from), ticks: evenTicks(low, high, count) }
}

/** An axis on which equal ratios are equally far apart. `domain` must be above 0. */
export function logarithmic(domain: readonly [number, number], range: readonly [number, number], count = 5): Scale {
  const [low, high] = domain.map(Math.log10) as [number, number]
  const inner = linear([low, high], range)
  return { at: (value) => inner.at(Math.log10(value)), ticks: ratioTicks(domain[0], domain[1], count) }
}

/** Round values from `low` to `high`, about `count` of them. */
export function evenTicks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low]
  const rough = (high - low) / Math.max(1, count)
  const size = 10 ** Math.floor(Math.log10(rough))
  const step = size * ([1, 2, 5, 10].find((factor) => size * factor >= rough) ?? 10)
  const ticks: number[] = []
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) ticks.push(Number((n * step).toPrecision(12)))
  return ticks
}

/** Values 1, 2 and 5 of each power of ten within the bounds; fewer kinds of them, or fewer powers, where they are many. */
export function ratioTicks(low: number, high: number, count: number): number[] {
  const first = Math.floor(Math.log10(low))
  const last = Math.ceil(Math.log10(high))
  const apart = Math.max(1, Math.ceil((last - first) / (count + 2)))
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks: number[] = []
    for (let power = first; power <= last; power += factors.length > 1 ? 1 : apart) {
      for (const factor of factors) {
        const value = Number((factor * 10 ** power).toPrecision(12))
        if (value >= low && value <= high) ticks.push(value)
      }
    }
    if (ticks.length <= count + 2 && ticks.length > 1) return ticks
  }
  return evenTicks(low, high, count).filter((value) => value > 0)
}
