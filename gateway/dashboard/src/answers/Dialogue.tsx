import { useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import { callQuery } from '../api/queries'
import { stringifyExact } from '../api/exactJson'
import type { Call, CallRow } from '../api/types'
import { Loaded } from '../components/Notices'
import { PlainText } from '../components/PlainText'
import { visible } from '../format/visible'
import { useTexts } from '../i18n/messages'
import { messages } from './messages'
import { toolCallsIn } from './toolCalls'

/** Texts are large: a dialogue of more calls shows its beginning. */
const MOST_TURNS = 60

/** The calls of one cell as an exchange between the target, a simulated user and their tools. Read when it is opened. */
export function Dialogue({ runId, calls }: { runId: string; calls: CallRow[] }) {
  const t = useTexts(messages)
  const [open, setOpen] = useState(false)
  return (
    <details className="fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('turns', { n: calls.length })}</summary>
      {open && <Turns runId={runId} calls={calls} />}
    </details>
  )
}

function Turns({ runId, calls }: { runId: string; calls: CallRow[] }) {
  const t = useTexts(messages)
  const shown = calls.slice(0, MOST_TURNS)
  const read = useQueries({ queries: shown.map((call) => callQuery(runId, call.id)) })
  return (
    <div className="stack-gap">
      <p className="note">{t('turnsNote')}</p>
      <ol className="turns">
        {read.map((query, index) => (
          <li key={shown[index]!.id} data-role={shown[index]!.role}>
            <Loaded query={query} what={t('what')}>
              {(call) => <Turn call={call} n={index + 1} />}
            </Loaded>
          </li>
        ))}
      </ol>
      {shown.length < calls.length && <p className="note">{t('first', { n: shown.length, all: calls.length })}</p>}
    </div>
  )
}

function Turn({ call, n }: { call: Call; n: number }) {
  const t = useTexts(messages)
  const role = `role_${call.role ?? 'subject'}`
  const title = t('turn', { n, role: role in messages.en ? t(role as keyof typeof messages.en) : visible(call.role ?? ''), model: visible(call.selected_model ?? call.model ?? call.target_id) })
  const tools = toolCallsIn(call.tool_calls)
  return (
    <>
      <h4>{title}</h4>
      {call.final && <PlainText label={title}>{call.final}</PlainText>}
      {tools.map((tool, index) => (
        <div key={index}>
          <p className="mono wrap">{t('tool', { name: visible(tool.name ?? t('unnamed')) })}</p>
          <PlainText label={t('tool', { name: tool.name ?? t('unnamed') })}>{typeof tool.given === 'string' ? tool.given : stringifyExact(tool.given, 2)}</PlainText>
        </div>
      ))}
      {!call.final && tools.length === 0 && <p className="note">{t('noText')}</p>}
    </>
  )
}
