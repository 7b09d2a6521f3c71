import { useState } from 'react'
import { messages as words } from '../../../charts/messages'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import type { Flow } from './RoutingFlow'

const MOST = 50

/** The flow for those who do not see it, and for those who want the figures: the largest ways first. */
export function FlowTable({ rows }: { rows: Flow['rows'] }) {
  const t = useTexts(messages)
  const word = useTexts(words)
  const [open, setOpen] = useState(false)
  const largest = open ? [...rows].sort((one, other) => other.cell_count - one.cell_count).slice(0, MOST) : []
  return (
    <details className="twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('table')}</summary>
      {rows.length > MOST && <p className="note">{t('shown', { shown: MOST, all: count(rows.length) ?? '' })}</p>}
      <div className="scroll" tabIndex={0} role="region" aria-label={t('table')}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{word('benchmark')}</th>
              <th scope="col">{word('decision')}</th>
              <th scope="col">{word('model')}</th>
              <th scope="col">{word('outcome')}</th>
              <th scope="col" className="num">{word('questions')}</th>
              <th scope="col" className="num">{t('cost')}</th>
            </tr>
          </thead>
          <tbody>
            {largest.map((row) => (
              <tr key={[row.target_id, row.benchmark, row.stratum, row.decision, row.model, row.outcome].join('\n')}>
                <td>{row.target_id}</td>
                <th scope="row">{row.stratum ? `${row.benchmark} / ${row.stratum}` : row.benchmark}</th>
                <td>{row.decision ?? word('noDecision')}</td>
                <td>{row.model ?? word('unknownModel')}</td>
                <td>{row.outcome in words.en ? word(row.outcome as 'right') : row.outcome}</td>
                <td className="num">{count(row.cell_count)}</td>
                <td className="num">
                  <Value why={t('unknownCosts', { n: row.unknown_cost_count })}>
                    {row.unknown_cost_count > 0 && row.known_cost_usd === 0 ? null : `${row.unknown_cost_count > 0 ? '≥ ' : ''}${usd(row.known_cost_usd) ?? ''}`}
                  </Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
