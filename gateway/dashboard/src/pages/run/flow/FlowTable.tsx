import { useState } from 'react'
import { messages as words } from '../../../charts/messages'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import type { Flow } from './RoutingFlow'
import { Scroll } from '../../../components/Scroll'

const MOST = 50

/** The flow for those who do not see it, and for those who want the figures: the largest ways first. */
export function FlowTable({ rows, preview }: { rows: Flow['rows']; preview: boolean }) {
  const t = useTexts(messages)
  const word = useTexts(words)
  const [open, setOpen] = useState(false)
  const largest = open ? [...rows].sort((one, other) => other.cell_count - one.cell_count).slice(0, MOST) : []
  return (
    <details className="twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('table')}</summary>
      {rows.length > MOST && <p className="note">{t('shown', { shown: MOST, all: count(rows.length) ?? '' })}</p>}
      <Scroll label={t('table')}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{word('benchmark')}</th>
              <th scope="col">{word('decision')}</th>
              <th scope="col">{word(preview ? 'modelChosen' : 'model')}</th>
              {!preview && <th scope="col">{word('outcome')}</th>}
              <th scope="col" className="num">{word('questions')}</th>
              {!preview && <th scope="col" className="num">{t('cost')}</th>}
            </tr>
          </thead>
          <tbody>
            {largest.map((row) => (
              <tr key={[row.target_id, row.benchmark, row.stratum, row.decision, row.model, row.outcome].join('\n')}>
                <td>{row.target_id}</td>
                <th scope="row">{row.stratum ? `${row.benchmark} / ${row.stratum}` : row.benchmark}</th>
                <td>{row.decision ?? word('noDecision')}</td>
                <td>{row.model ?? word('unknownModel')}</td>
                {!preview && <td>{row.outcome in words.en ? word(row.outcome as 'right') : row.outcome}</td>}
                <td className="num">{count(row.cell_count)}</td>
                {!preview && (
                  <td className="num">
                    <Value why={t('unknownCosts', { n: row.unknown_cost_count })}>
                      {row.unknown_cost_count > 0 && row.known_cost_usd === 0 ? null : `${row.unknown_cost_count > 0 ? '≥ ' : ''}${usd(row.known_cost_usd) ?? ''}`}
                    </Value>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  )
}
