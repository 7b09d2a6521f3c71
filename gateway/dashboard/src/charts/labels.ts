// Where names stand beside their points: tried above first, where the frontier does not run, never over each other.

export interface Box {
  x: number
  y: number
  width: number
  height: number
}
export interface Spot {
  x: number
  y: number
  anchor: 'start' | 'end' | 'middle'
}

const CHAR_PX = 6.6
const LINE_PX = 14
const GAP_PX = 9

/** A place for each of `texts`, or `null` where there is none inside `area`. Earlier ones choose first. */
export function placeLabels(points: readonly { x: number; y: number }[], texts: readonly string[], area: Box): (Spot | null)[] {
  const taken: Box[] = points.map(({ x, y }) => ({ x: x - 7, y: y - 7, width: 14, height: 14 }))
  return points.map(({ x, y }, index) => {
    const width = (texts[index] ?? '').length * CHAR_PX
    const above = { y: y - GAP_PX - LINE_PX + 4, width, height: LINE_PX }
    const tries: [Spot, Box][] = [
      [{ x: x + GAP_PX - 2, y: y - GAP_PX, anchor: 'start' }, { x: x + GAP_PX, ...above }],
      [{ x: x - GAP_PX + 2, y: y - GAP_PX, anchor: 'end' }, { x: x - GAP_PX - width, ...above }],
      [{ x: x + GAP_PX, y: y + 4, anchor: 'start' }, { x: x + GAP_PX, y: y - LINE_PX / 2, width, height: LINE_PX }],
      [{ x: x - GAP_PX, y: y + 4, anchor: 'end' }, { x: x - GAP_PX - width, y: y - LINE_PX / 2, width, height: LINE_PX }],
      [{ x, y: y + GAP_PX + 11, anchor: 'middle' }, { x: x - width / 2, y: y + GAP_PX, width, height: LINE_PX }],
    ]
    const found = tries.find(([, box]) => inside(box, area) && !taken.some((other) => overlap(box, other)))
    if (!found) return null
    taken.push(found[1])
    return found[0]
  })
}

function inside(box: Box, area: Box): boolean {
  return box.x >= area.x && box.y >= area.y && box.x + box.width <= area.x + area.width && box.y + box.height <= area.y + area.height
}

function overlap(one: Box, other: Box): boolean {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height
}
