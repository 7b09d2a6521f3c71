// A table of any length: only the rows in sight exist, and only the blocks of rows in sight are read.
import { useQueries, type UseQueryOptions } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react'
import { visible } from '../format/visible'
import { defineMessages, useTexts } from '../i18n/messages'
import { useProblem } from '../i18n/problems'

export const BLOCK = 100
const ROW_PX = 44

export interface Column<Row> {
  key: string
  label: string
  /** A CSS grid track. */
  width: string
  numeric?: boolean
  /** The order that a click on the head asks for. */
  orderBy?: string
  cell: (row: Row) => ReactNode
}

interface Order {
  by: string | undefined
  descending: boolean
}

/** One block of rows: those from `offset` on. */
type BlockQuery<Row> = (offset: number) => UseQueryOptions<{ rows: Row[]; total: number }>

const messages = defineMessages(
  { loading: 'loading…', failed: 'these rows could not be read: {message}', sort: 'Sort by {label}' },
  { loading: '加载中…', failed: '无法读取这些行：{message}', sort: '按{label}排序' },
)

interface Props<Row> {
  label: string
  columns: Column<Row>[]
  total: number
  block: BlockQuery<Row>
  keyOf: (row: Row) => string
  openKey: string | undefined
  /** The place of the open row, so that walking knows where it is. */
  openPlace: number | undefined
  onOpen: (row: Row, place: number) => void
  order: Order
  onOrder: (order: Order) => void
}

export function VirtualTable<Row>({ label, columns, total, block, keyOf, openKey, openPlace, onOpen, order, onOrder }: Props<Row>) {
  const t = useTexts(messages)
  const problem = useProblem()
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: total, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: 8 })
  const items = virtual.getVirtualItems()
  const first = Math.floor((items[0]?.index ?? 0) / BLOCK)
  const last = Math.floor((items.at(-1)?.index ?? 0) / BLOCK)
  const blocks = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * BLOCK)
  const read = useQueries({ queries: blocks.map((offset) => block(offset)) })
  const rowAt = (place: number) => {
    const found = read[Math.floor(place / BLOCK) - first]
    return { row: found?.data?.rows[place % BLOCK], error: found?.error }
  }

  // Walking with the keyboard keeps the open row in sight.
  useEffect(() => {
    if (openPlace !== undefined && openPlace < total) virtual.scrollToIndex(openPlace, { align: 'auto' })
  }, [openPlace, total, virtual])

  const walk = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined || !(event.target instanceof HTMLElement)) return
    const place = Number(event.target.closest<HTMLElement>('[data-place]')?.dataset.place)
    if (!Number.isInteger(place)) return
    event.preventDefault()
    scroller.current?.querySelector<HTMLElement>(`[data-place="${place + step}"] button`)?.focus()
  }
  const tracks = { gridTemplateColumns: columns.map((column) => column.width).join(' ') }
  return (
    <div className="vtable" role="table" aria-label={label} aria-rowcount={total + 1} aria-colcount={columns.length}>
      <div className="vtable-scroll" ref={scroller} tabIndex={0} role="rowgroup" onKeyDown={walk}>
        <div className="vrow vhead" role="row" aria-rowindex={1} style={tracks}>
          {columns.map((column) => (
            <Head key={column.key} column={column} order={order} onOrder={onOrder} title={t('sort', { label: column.label })} />
          ))}
        </div>
        <div className="vbody" role="presentation" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const { row, error } = rowAt(item.index)
            const open = row !== undefined && keyOf(row) === openKey
            return (
              <div
                key={item.key}
                className="vrow"
                role="row"
                aria-rowindex={item.index + 2}
                data-place={item.index}
                data-open={open || undefined}
                style={{ ...tracks, transform: `translateY(${item.start}px)`, height: ROW_PX }}
                onClick={() => row !== undefined && onOpen(row, item.index)}
              >
                {row === undefined ? (
                  <span role="cell" className="soft">
                    {error ? t('failed', { message: problem(error) }) : t('loading')}
                  </span>
                ) : (
                  columns.map((column, index) => (
                    <span key={column.key} role="cell" className={column.numeric ? 'vcell num' : 'vcell'}>
                      {index === 0 ? (
                        <button type="button" className="vopen" aria-expanded={open}>
                          {shown(column.cell(row))}
                        </button>
                      ) : (
                        shown(column.cell(row))
                      )}
                    </span>
                  ))
                )}
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}

/** A cell that is only a text. */
function shown(cell: ReactNode): ReactNode {
  return typeof cell === 'string' ? visible(cell) : cell
}

function Head<Row>({ column, order, onOrder, title }: { column: Column<Row>; order: Order; onOrder: (order: Order) => void; title: string }) {
  const { orderBy } = column
  const sorted = orderBy !== undefined && order.by === orderBy
  const next = (): Order => {
    if (!sorted) return { by: orderBy, descending: true }
    return order.descending ? { by: orderBy, descending: false } : { by: undefined, descending: false }
  }
  const state = sorted ? (order.descending ? 'descending' : 'ascending') : undefined
  return (
    <span role="columnheader" className={column.numeric ? 'vcell num' : 'vcell'} aria-sort={state}>
      {orderBy ? (
        <button type="button" className="vsort" title={title} onClick={() => onOrder(next())}>
          {column.label}
          <span aria-hidden>{state === 'descending' ? ' ↓' : state === 'ascending' ? ' ↑' : ' ↕'}</span>
        </button>
      ) : (
        column.label
      )}
    </span>
  )
}
