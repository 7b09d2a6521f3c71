export type Grid = number[][]

/** The cells in which two grids of one size differ, as `row * width + column`; `null` when their sizes differ. */
export function differing(one: Grid, other: Grid): ReadonlySet<number> | null {
  const width = one[0]?.length ?? 0
  if (one.length !== other.length || width !== (other[0]?.length ?? 0)) return null
  return new Set(one.flatMap((row, y) => row.flatMap((cell, x) => (cell === other[y]?.[x] ? [] : [y * width + x]))))
}
