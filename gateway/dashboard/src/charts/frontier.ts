// Which targets nobody beats.

export interface Placed {
  quality: number
  /** US dollars. */
  cost: number
}

/** The points that no other beats: none is at least as good and at most as dear, and better in one. Cheapest first. */
export function frontier<T extends Placed>(points: readonly T[]): T[] {
  return points.filter((one) => !points.some((other) => beats(other, one))).sort((a, b) => a.cost - b.cost || a.quality - b.quality)
}

function beats(one: Placed, other: Placed): boolean {
  const noWorse = one.quality >= other.quality && one.cost <= other.cost
  return noWorse && (one.quality > other.quality || one.cost < other.cost)
}

/** The corners of the step line through a frontier: it goes right at one quality, then up at the next cost. */
export function steps(points: readonly Placed[]): Placed[] {
  return points.flatMap((point, index) => {
    const before = points[index - 1]
    return before ? [{ cost: point.cost, quality: before.quality }, point] : [point]
  })
}
