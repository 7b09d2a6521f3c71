import { defineMessages, useTexts } from '../i18n/messages'
import type { Grid } from './gridDiff'

const messages = defineMessages(
  { grid: '{title}: {rows} rows, {columns} columns', marked: '{grid}; {n} {n|cell|cells} crossed', input: 'Input', output: 'Output', pair: 'Pair {n}', test: 'Test {n}' },
  { grid: '{title}：{rows} 行 {columns} 列', marked: '{grid}；{n} 个单元格打叉', input: '输入', output: '输出', pair: '示例 {n}', test: '测试 {n}' },
)

/** Whether `value` is a rectangular grid of digits. */
function isGrid(value: unknown): value is Grid {
  if (!Array.isArray(value) || value.length === 0 || value.length > 60) return false
  const width = Array.isArray(value[0]) ? value[0].length : 0
  return width > 0 && width <= 60 && value.every((row) => Array.isArray(row) && row.length === width && row.every(isCell))
}

function isCell(cell: unknown): boolean {
  return typeof cell === 'number' && Number.isInteger(cell) && cell >= 0 && cell <= 9
}

/** The grids in an answer: one, or a list of them; `null` when it is neither. */
export function gridsIn(value: unknown): Grid[] | null {
  if (isGrid(value)) return [value]
  return Array.isArray(value) && value.length > 0 && value.length <= 20 && value.every(isGrid) ? value : null
}

/**
 * One grid, drawn: a path for each colour, for large tasks have thousands of cells. Its digit is its title, so that colour alone says
 * nothing; cells in `marked` (`row * width + column`) are crossed.
 */
export function GridView({ grid, title, marked }: { grid: Grid; title: string; marked?: ReadonlySet<number> | undefined }) {
  const t = useTexts(messages)
  const columns = grid[0]?.length ?? 0
  const whole = t('grid', { title, rows: grid.length, columns })
  const size = Math.max(6, Math.min(18, Math.floor(210 / Math.max(columns, grid.length))))
  return (
    <figure className="grid-figure">
      <figcaption>{title}</figcaption>
      <svg
        role="img"
        aria-label={marked ? t('marked', { grid: whole, n: marked.size }) : whole}
        width={columns * size}
        height={grid.length * size}
        viewBox={`0 0 ${columns * size} ${grid.length * size}`}
      >
        {coloursOf(grid).map((cell) => (
          <path key={cell} className={`cell-${cell}`} d={squares(grid, cell, size)}>
            <title>{cell}</title>
          </path>
        ))}
        {/* Dark under light, so that crosses are seen on every colour. */}
        {marked && <path className="grid-mark under" d={crosses(marked, columns, size)} />}
        {marked && <path className="grid-mark" d={crosses(marked, columns, size)} />}
      </svg>
    </figure>
  )
}

function crosses(cells: ReadonlySet<number>, columns: number, size: number): string {
  const [near, far] = [size * 0.25, size * 0.75]
  return [...cells]
    .map((cell) => {
      const [x, y] = [(cell % columns) * size, Math.floor(cell / columns) * size]
      return `M${x + near} ${y + near}L${x + far} ${y + far}M${x + far} ${y + near}L${x + near} ${y + far}`
    })
    .join('')
}

function coloursOf(grid: Grid): number[] {
  return [...new Set(grid.flat())].sort()
}

function squares(grid: Grid, cell: number, size: number): string {
  return grid.flatMap((row, y) => row.flatMap((found, x) => (found === cell ? [`M${x * size} ${y * size}h${size}v${size}h${-size}z`] : []))).join('')
}

interface Task {
  train: { input: Grid; output: Grid }[]
  test: Grid[]
}

/** The grids of a task; `null` when `value` is no task. */
export function taskIn(value: unknown): Task | null {
  if (typeof value !== 'object' || value === null) return null
  const { train, test } = value as { train?: unknown; test?: unknown }
  if (!Array.isArray(train) || !Array.isArray(test)) return null
  const pairs = train.filter((pair): pair is { input: Grid; output: Grid } => isGrid(pair?.input) && isGrid(pair?.output))
  const inputs = test.map((item: unknown) => (isGrid(item) ? item : (item as { input?: unknown } | null)?.input)).filter(isGrid)
  return pairs.length > 0 || inputs.length > 0 ? { train: pairs, test: inputs } : null
}

/** A grid task: its pairs and what is asked. The wanted outputs are not known here. */
export function TaskView({ task }: { task: Task }) {
  const t = useTexts(messages)
  return (
    <div className="grid-task">
      {task.train.map((pair, index) => (
        <div className="grid-pair" key={index}>
          <GridView grid={pair.input} title={`${t('pair', { n: index + 1 })} · ${t('input')}`} />
          <GridView grid={pair.output} title={t('output')} />
        </div>
      ))}
      {task.test.map((grid, index) => (
        <div className="grid-pair" key={`test-${index}`}>
          <GridView grid={grid} title={`${t('test', { n: index + 1 })} · ${t('input')}`} />
        </div>
      ))}
    </div>
  )
}
