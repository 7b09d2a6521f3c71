import type { Metrics } from '../../../api/types'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'

const BUCKETS = ['fresh', 'cached', 'write', 'output'] as const
const COSTS = ['own', 'evaluation', 'total'] as const

/** The four buckets of tokens of every target, and what its own calls and its evaluation cost. */
export function TokensAndSpend({ targets }: { targets: Metrics[] }) {
  const t = useTexts(messages)
  return (
    <Section title={t('title')} note={t('note')}>
      <Scroll label={t('title')}>
        <table className="table" aria-label={t('title')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              {(['calls', ...BUCKETS, ...COSTS] as const).map((name) => (
                <th key={name} scope="col" className="num">
                  {t(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {targets.map((row) => (
              <Line key={row.id} row={row} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}

function Line({ row }: { row: Metrics }) {
  const t = useTexts(messages)
  const { tokens } = row
  const buckets = [tokens?.input_tokens, tokens?.cached_input_tokens, tokens?.cache_write_tokens, tokens?.output_tokens]
  const costs = [row.cost_usd, row.evaluation_cost_usd, row.total_spend_usd]
  return (
    <tr>
      <th scope="row">{row.id}</th>
      <td className="num">
        <Value why={t('tokensWhy')}>{count(row.call_count)}</Value>
      </td>
      {buckets.map((value, index) => (
        <td key={BUCKETS[index]} className="num">
          <Value why={t('tokensWhy')}>{count(value)}</Value>
        </td>
      ))}
      {costs.map((value, index) => (
        <td key={COSTS[index]} className="num">
          <Value why={t('costWhy', { known: usd(row.known_cost_usd) ?? '' })}>{usd(value)}</Value>
        </td>
      ))}
    </tr>
  )
}
