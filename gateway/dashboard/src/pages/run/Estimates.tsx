import type { Metrics } from '../../api/types'
import { Section } from '../../components/Page'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { Interval } from './Interval'
import { messages } from './messages'

/** What a replay estimates, apart from everything that was measured. */
export function Estimates({ rows }: { rows: Metrics[] }) {
  const t = useTexts(messages)
  const both = (one: string | null, other: string | null) => (one === null || other === null ? null : `${one} / ${other}`)
  return (
    <Section title={t('estimates')} note={t('estimatesNote')}>
      <Scroll label={t('estimates')}>
        <table className="table" aria-label={t('estimates')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('estimatedAccuracy')}</th>
              <th scope="col" className="num">
                {t('estimatedCost')}
              </th>
              <th scope="col" className="num">
                {t('estimatedLatency')}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                <th scope="row">{row.id}</th>
                <td>
                  <Interval value={row.estimated_accuracy} ends={row.estimated_accuracy_ci95} />
                </td>
                <td className="num">
                  <Value>{usd(row.estimated_cost_usd)}</Value>
                </td>
                <td className="num">
                  <Value why={t('timeNote')}>{both(duration(row.estimated_latency_p50_s), duration(row.estimated_latency_p95_s))}</Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}
