import { useQuery } from '@tanstack/react-query'
import { callQuery } from '../../api/queries'
import type { Call } from '../../api/types'
import { JsonBlock } from '../../components/JsonBlock'
import { Loaded } from '../../components/Notices'
import { PlainText } from '../../components/PlainText'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** What a call said. All of it is text from outside. */
export function CallTexts({ runId, callId }: { runId: string; callId: string }) {
  const t = useTexts(messages)
  const call = useQuery(callQuery(runId, callId))
  return (
    <Loaded query={call} what={t('whatAnswer')}>
      {(found) => <Texts call={found} />}
    </Loaded>
  )
}

export function Texts({ call }: { call: Call }) {
  const t = useTexts(messages)
  return (
    <>
      {call.reasoning && (
        <details className="fold">
          <summary>{t('reasoning')}</summary>
          <PlainText label={t('reasoning')}>{call.reasoning}</PlainText>
        </details>
      )}
      <h3>{t('answer')}</h3>
      {call.evidence_error && (
        <p className="note" role="alert">
          {t('damagedEvidence')} {call.evidence_error}
        </p>
      )}
      {call.final && <PlainText label={t('answer')}>{call.final}</PlainText>}
      {!call.final && !call.evidence_error && <p className="note">{t('noText')}</p>}
      {call.refusal && (
        <>
          <h3>{t('refusal')}</h3>
          <PlainText label={t('refusal')}>{call.refusal}</PlainText>
        </>
      )}
      {call.tool_calls !== null && call.tool_calls !== undefined && <JsonBlock title={t('toolCalls')} value={call.tool_calls} />}
      {call.request !== null && <JsonBlock title={t('requestSettings')} value={call.request} />}
    </>
  )
}
