import { useQuery } from '@tanstack/react-query'
import { getText } from '../../../api/client'
import type { Call } from '../../../api/types'
import { Loaded } from '../../../components/Notices'
import { PlainText } from '../../../components/PlainText'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { visible } from '../../../format/visible'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import { traceOf, type Said } from './trace'

/** Longer values get a frame of their own. */
const SHORT_CHARS = 300

/** Why the router chose as it did, in its own words, and what it called. Nothing for calls of which no router spoke. */
export function Trace({ runId, call }: { runId: string; call: Call }) {
  const t = useTexts(messages)
  const routed = call.decision !== null || call.selected_model !== null || call.config_hash !== null
  const headers = useQuery({
    queryKey: ['call-headers', runId, call.id],
    queryFn: ({ signal }) => getText('/runs/{run_id}/calls/{call_id}/evidence', { path: { run_id: runId, call_id: call.id }, query: { part: 'headers' }, signal }),
    enabled: routed && call.evidence_sha256 !== null,
    staleTime: Infinity,
  })
  if (!routed) return null
  const other = call.model !== null && call.selected_model !== null && call.model !== call.selected_model
  return (
    <section className="stack-gap" aria-label={t('title')}>
      <h3>{t('title')}</h3>
      {other && <p className="bad">{t('differs', { selected: visible(call.selected_model ?? ''), model: visible(call.model ?? '') })}</p>}
      {call.evidence_sha256 !== null && (
        <Loaded query={headers} what={t('what')}>
          {(found) => <Steps headers={found} />}
        </Loaded>
      )}
      {call.model_usage.length > 1 && <Inner calls={call.model_usage} />}
    </section>
  )
}

function Steps({ headers }: { headers: string }) {
  const t = useTexts(messages)
  const steps = traceOf(headers)
  if (steps.length === 0) return <p className="note">{t('nothing')}</p>
  return (
    <>
      <p className="note">{t('note')}</p>
      <ol className="trace">
        {steps.map(([step, rows]) => (
          <li key={step}>
            <h4>{t(step)}</h4>
            <dl className="facts">
              {rows.map((row, index) => (
                <Row key={`${row.header} ${index}`} row={row} />
              ))}
            </dl>
          </li>
        ))}
      </ol>
    </>
  )
}

function Row({ row }: { row: Said }) {
  const t = useTexts(messages)
  return (
    <div className="fact">
      <dt className="mono wrap" data-verbatim>
        {row.header}
        {row.trailer && <span className="block">{t('trailer')}</span>}
      </dt>
      <dd className="plain" data-verbatim>
        {row.value.length > SHORT_CHARS ? <PlainText label={row.header}>{row.value}</PlainText> : visible(row.value)}
      </dd>
    </div>
  )
}

function Inner({ calls }: { calls: Call['model_usage'] }) {
  const t = useTexts(messages)
  const figure = (text: string | null) => (
    <td className="num">
      <Value why={t('unsaid')}>{text}</Value>
    </td>
  )
  return (
    <>
      <h4>{t('inner')}</h4>
      <p className="note">{t('innerNote')}</p>
      <Scroll label={t('inner')}>
        <table className="table" aria-label={t('inner')}>
          <thead>
            <tr>
              <th scope="col">{t('modelOf')}</th>
              {[t('fresh'), t('cached'), t('written'), t('output'), t('cost')].map((name) => (
                <th scope="col" className="num" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {calls.map((inner, index) => (
              <tr key={index}>
                <th scope="row">{visible(inner.model ?? '')}</th>
                {figure(count(inner.usage?.input_tokens))}
                {figure(count(inner.usage?.cached_input_tokens))}
                {figure(count(inner.usage?.cache_write_tokens))}
                {figure(count(inner.usage?.output_tokens))}
                {figure(usd(inner.cost_usd))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  )
}
