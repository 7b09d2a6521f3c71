import { Link } from '@tanstack/react-router'
import type { Metrics } from '../../../api/types'
import { Section } from '../../../components/Page'
import { Reason } from '../../../components/Reason'
import { count } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from '../messages'

/** What failed, by reason, most first; a number leads to the questions. */
export function Triage({ targets, runId }: { targets: Metrics[]; runId: string }) {
  const t = useTexts(messages)
  const rows = targets.flatMap((target) => Object.entries(target.failure_reasons).map(([reason, n]) => ({ target: target.id, reason, n })))
  rows.sort((one, other) => other.n - one.n)
  return (
    <Section title={t('triage')}>
      {rows.length === 0 ? (
        <p className="note">{t('triageNone')}</p>
      ) : (
        <table className="table" aria-label={t('triage')}>
          <thead>
            <tr>
              <th scope="col">{t('reason')}</th>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">
                {t('failures')}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ target, reason, n }) => (
              <tr key={`${target} ${reason}`}>
                <th scope="row">
                  <Reason reason={reason} />
                </th>
                <td>{target}</td>
                <td className="num">
                  <Link to="/runs/$runId/questions" params={{ runId }} search={{ target, reason }} aria-label={t('triageShow', { n })}>
                    {count(n)}
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  )
}
