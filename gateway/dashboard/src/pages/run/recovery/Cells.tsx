import { Button, Checkbox } from '@mantine/core'
import { useState } from 'react'
import { Pager } from '../../../components/Pager'
import { Scroll } from '../../../components/Scroll'
import { StatusPill } from '../../../components/Status'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import type { Plan } from './submission'

const PAGE = 25
type Eligible = Plan['eligible_cells'][number]
type Excluded = Plan['excluded'][number]

/** What names a cell. */
export function keyOf(cell: { case_id: string; target_id: string }): string {
  return JSON.stringify([cell.case_id, cell.target_id])
}

/** The cells that can be tried again; all are chosen at first. */
export function EligibleCells({ cells, chosen, onChange }: { cells: Eligible[]; chosen: ReadonlySet<string>; onChange: (chosen: ReadonlySet<string>) => void }) {
  const t = useTexts(messages)
  const [page, setPage] = useState(0)
  const toggle = (cell: Eligible, on: boolean) => {
    const next = new Set(chosen)
    if (on) next.add(keyOf(cell))
    else next.delete(keyOf(cell))
    onChange(next)
  }
  return (
    <>
      <div className="actions">
        <Button size="compact-sm" variant="default" disabled={chosen.size === cells.length} onClick={() => onChange(new Set(cells.map(keyOf)))}>
          {t('selectAll', { n: count(cells.length) ?? '' })}
        </Button>
        <Button size="compact-sm" variant="default" disabled={chosen.size === 0} onClick={() => onChange(new Set())}>
          {t('selectNone')}
        </Button>
      </div>
      <Scroll label={t('cells')}>
        <table className="table" aria-label={t('cells')}>
          <thead>
            <tr>
              <th scope="col">{t('select')}</th>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('case')}</th>
              <th scope="col">{t('state')}</th>
              <th scope="col">{t('reason')}</th>
              <th scope="col" className="num">
                {t('spent')}
              </th>
            </tr>
          </thead>
          <tbody>
            {cells.slice(page * PAGE, (page + 1) * PAGE).map((cell) => (
              <tr key={keyOf(cell)}>
                <td>
                  <Checkbox aria-label={t('selectCell', { case: cell.case_id, target: cell.target_id })} checked={chosen.has(keyOf(cell))} onChange={(event) => toggle(cell, event.currentTarget.checked)} />
                </td>
                <td className="wrap">{cell.target_id}</td>
                <th scope="row">{cell.case_id}</th>
                <td>
                  <StatusPill status={cell.state} />
                </td>
                <td className="mono">
                  <Value>{cell.reason || null}</Value>
                </td>
                <td className="num">
                  <Spent cell={cell} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Pager label={t('cells')} page={page} size={PAGE} total={cells.length} onPage={setPage} />
    </>
  )
}

/** What a cell has cost: a figure when all of it is known, else a dash with its bound. */
function Spent({ cell }: { cell: Eligible }) {
  const t = useTexts(messages)
  if (cell.spend_complete) return <Value>{usd(cell.known_spend_usd)}</Value>
  const bound = cell.spend_upper_usd === null ? t('upperUnknown') : t('upTo', { upper: usd(cell.spend_upper_usd) ?? '' })
  return (
    <>
      <Value why={bound}>{null}</Value>
      <span className="note block">{bound}</span>
    </>
  )
}

/** The cells that stay as they are: how many for each reason, then one by one. */
export function ExcludedCells({ cells, reasons }: { cells: Excluded[]; reasons: Record<string, number> }) {
  const t = useTexts(messages)
  const [page, setPage] = useState(0)
  const says = (kind: 'why' | 'help', reason: string) => {
    const key = `${kind}_${reason}` as Parameters<typeof t>[0]
    const sentence = t(key)
    return sentence === key ? null : sentence
  }
  return (
    <details className="fold">
      <summary>{t('excludedCells', { n: cells.length })}</summary>
      <Scroll label={t('excluded')}>
        <table className="table" aria-label={t('excluded')}>
          <thead>
            <tr>
              <th scope="col">{t('reason')}</th>
              <th scope="col" className="num">
                {t('count')}
              </th>
              <th scope="col">{t('wayOut')}</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(reasons).map(([reason, n]) => (
              <tr key={reason}>
                <th scope="row">
                  {says('why', reason) ?? reason} <code className="soft block">{reason}</code>
                </th>
                <td className="num">{count(n)}</td>
                <td>{says('help', reason)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <ul className="plain-list cell-list">
        {cells.slice(page * PAGE, (page + 1) * PAGE).map((cell) => (
          <li key={keyOf(cell)} className="wrap">
            {cell.case_id} · {cell.target_id} <code className="soft">{cell.reason}</code>
          </li>
        ))}
      </ul>
      <Pager label={t('excluded')} page={page} size={PAGE} total={cells.length} onPage={setPage} />
    </details>
  )
}
