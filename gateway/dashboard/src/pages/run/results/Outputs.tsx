import type { Metrics } from '../../../api/types'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, percent } from '../../../format/numbers'
import { Term } from '../../../glossary/Term'
import { useTexts } from '../../../i18n/messages'
import { messages } from '../messages'

/** How answers ended, and whether they had the form that was asked for. */
export function Outputs({ targets }: { targets: Metrics[] }) {
  const t = useTexts(messages)
  const rate = (part: number, of: number) => (of === 0 ? null : `${count(part)} / ${count(of)} (${percent(part / of)})`)
  return (
    <Section title={t('diagnostics')}>
      <Scroll label={t('diagnostics')}>
        <table className="table" aria-label={t('diagnostics')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('outputLimit')}</th>
              <th scope="col">
                <Term term="format" figures={targets.map(({ id, output_diagnostics: found }) => ({ name: id, text: (found?.strict_format && rate(found.strict_format.failed_cases, found.strict_format.checked_cases)) || null }))}>
                  {t('formatFailed')}
                </Term>
              </th>
              <th scope="col">{t('finishReasons')}</th>
            </tr>
          </thead>
          <tbody>
            {targets.map(({ id, output_diagnostics: found }) => (
              <tr key={id}>
                <th scope="row">{id}</th>
                <td>
                  <Value why={t('notAssessed')}>{found && rate(found.output_limit_cases, found.result_cases)}</Value>
                </td>
                <td>
                  <Value why={t('notAssessed')}>{found?.strict_format && rate(found.strict_format.failed_cases, found.strict_format.checked_cases)}</Value>
                </td>
                <td>
                  {Object.entries(found?.subject_calls?.finish_reasons ?? {}).map(([reason, n]) => (
                    <span key={reason} className="block">
                      {reason}: {count(n)}
                    </span>
                  ))}
                  {(found?.subject_calls?.unknown_finish_reason ?? 0) > 0 && (
                    <span className="block soft">
                      {t('unknownFinish')}: {count(found?.subject_calls?.unknown_finish_reason)}
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}
