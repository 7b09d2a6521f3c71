import type { Metrics } from '../../../api/types'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, decimal, percent } from '../../../format/numbers'
import { Term } from '../../../glossary/Term'
import { useTexts } from '../../../i18n/messages'
import { messages } from '../messages'
import { figureOf } from '../terms/figures'
import { messages as termMessages } from '../terms/messages'

/** Tasks of several calls: switches between models, and what was read from caches. */
export function Continuity({ targets }: { targets: Metrics[] }) {
  const t = useTexts(messages)
  const terms = useTexts(termMessages)
  return (
    <Section title={t('continuity')} note={t('continuityNote')}>
      <Scroll label={t('continuity')}>
        <table className="table" aria-label={t('continuity')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">
                {t('multiTasks')}
              </th>
              <th scope="col" className="num">
                {t('switched')}
              </th>
              <th scope="col" className="num">
                {t('switchedAccuracy')}
              </th>
              <th scope="col" className="num">
                {t('switches')}
              </th>
              <th scope="col" className="num">
                <Term term="cacheRead" figures={targets.map((row) => ({ name: row.id, text: figureOf('cacheRead', row, [], terms) }))}>
                  {t('cacheRate')}
                </Term>
              </th>
            </tr>
          </thead>
          <tbody>
            {targets.map(({ id, continuity, cache_read: cache }) => {
              const several = continuity ? continuity.multi_inference_tasks + continuity.multi_request_tasks : null
              const both = continuity && [percent(continuity.switched_accuracy), percent(continuity.unswitched_accuracy)]
              return (
                <tr key={id}>
                  <th scope="row">{id}</th>
                  <td className="num">
                    <Value>{count(several)}</Value>
                  </td>
                  <td className="num">
                    <Value>{count(continuity?.switched_tasks)}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('noMulti')}>{both && (both[0] ?? both[1]) !== null ? `${both[0] ?? '—'} / ${both[1] ?? '—'}` : null}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('noMulti')}>{decimal(continuity?.mean_switches_per_task)}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('cacheWhy', { n: count(cache?.unreported_calls) ?? '' })}>{percent(cache?.cache_read_rate)}</Value>
                    {cache && cache.unreported_calls > 0 && cache.reported_calls > 0 && (
                      <span className="note block">{t('cacheWhy', { n: count(cache.unreported_calls) ?? '' })}</span>
                    )}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}
