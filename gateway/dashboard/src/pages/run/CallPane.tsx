import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { address } from '../../api/client'
import { exactSum, type Exact } from '../../api/exactJson'
import { callQuery } from '../../api/queries'
import type { Call, TokenUsage } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { DetailPane, type Walk } from '../../components/DetailPane'
import { Fault } from '../../components/Fault'
import { JsonBlock } from '../../components/JsonBlock'
import { Loaded } from '../../components/Notices'
import { Tile, Tiles } from '../../components/Page'
import { StatusPill } from '../../components/Status'
import { Value } from '../../components/Value'
import { command } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { duration, moment } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useEnd } from '../../i18n/ends'
import { Texts } from './CallTexts'
import { Trace } from './trace/Trace'
import { messages } from './messages'

/** One call with its texts, tokens and evidence. */
export function CallPane({ runId, callId, walk, onClose }: { runId: string; callId: string; walk: Walk; onClose: () => void }) {
  const t = useTexts(messages)
  const call = useQuery(callQuery(runId, callId))
  return (
    <DetailPane title={call.data ? `${call.data.case_id} · ${call.data.target_id}` : callId} walk={walk} onClose={onClose}>
      <Loaded query={call} what={t('whatAnswer')}>
        {(found) => <CallView runId={runId} call={found} />}
      </Loaded>
    </DetailPane>
  )
}

function CallView({ runId, call }: { runId: string; call: Call }) {
  const t = useTexts(messages)
  const end = useEnd()
  const bounds = call.cost_lower_usd !== null && call.cost_upper_usd !== null ? t('costBounds', { lower: usd(call.cost_lower_usd) ?? '', upper: usd(call.cost_upper_usd) ?? '' }) : undefined
  return (
    <>
      <Tiles>
        <Tile label={t('status')} note={call.reason && end(call.reason)}>
          <StatusPill status={call.status ?? ''} />
        </Tile>
        <Tile label={t('model')} note={call.decision && `${t('decision')}: ${call.decision}`}>
          <Value>{call.selected_model ?? call.model}</Value>
        </Tile>
        <Tile label={t('cost')} note={bounds}>
          <Value why={bounds}>{usd(call.cost_usd)}</Value>
        </Tile>
        <Tile label={t('latencyOne')}>
          <Value why={t('timeNote')}>{duration(call.latency_s)}</Value>
        </Tile>
        <Tile label={t('ttftOne')}>
          <Value why={t('timeNote')}>{duration(call.ttft_s)}</Value>
        </Tile>
        <Tile label={t('finish')}>
          <Value>{call.finish_reason}</Value>
        </Tile>
      </Tiles>
      <Fault reason={call.reason} text={call.error} />
      <Trace runId={runId} call={call} />
      <Texts call={call} />
      <h3>{t('buckets')}</h3>
      <Buckets usage={call.usage} flags={call.usage_flags} />
      {call.model_usage.length > 0 && <JsonBlock title={t('innerCalls')} value={call.model_usage} />}
      <JsonBlock title={t('receipt')} value={call.raw_usage} />
      <dl className="facts">
        <dt>{t('started')}</dt>
        <dd>
          <Value>{moment(call.started_at)}</Value>
        </dd>
        <dt>{t('finished')}</dt>
        <dd>
          <Value>{moment(call.finished_at)}</Value>
        </dd>
        <dt>{t('configHash')}</dt>
        <dd className="mono">
          <Value>{call.config_hash}</Value>
        </dd>
        <dt>{t('requestSha')}</dt>
        <dd className="mono">{call.request_sha256}</dd>
      </dl>
      <div className="actions">
        <Link to="/runs/$runId/questions" params={{ runId }} search={{ q: call.case_id.slice(0, 200), target: call.target_id }} className="button-link">
          {t('openCase')}
        </Link>
        {call.evidence_sha256 ? (
          <>
            <a className="button-link" download href={address('/runs/{run_id}/calls/{call_id}/evidence', { run_id: runId, call_id: call.id }, { part: 'body' })}>
              {t('download')}
            </a>
            <a className="button-link" download href={address('/runs/{run_id}/calls/{call_id}/evidence', { run_id: runId, call_id: call.id }, { part: 'headers' })}>
              {t('downloadHeaders')}
            </a>
          </>
        ) : (
          <span className="note">{t('noEvidence')}</span>
        )}
        <CopyCommand text={command('show', runId, '--call-id', call.id)} />
      </div>
    </>
  )
}

/** The four exclusive buckets and their sum, exact; the sum is unknown when a part is. */
export function Buckets({ usage, flags }: { usage: TokenUsage | null; flags: string[] }) {
  const t = useTexts(messages)
  const why = flags.length > 0 ? t('usageFlags', { flags: flags.join(', ') }) : t('usageWhy')
  const parts: [string, Exact | null | undefined][] = [
    [t('fresh'), usage?.input_tokens],
    [t('cached'), usage?.cached_input_tokens],
    [t('cacheWrite'), usage?.cache_write_tokens],
    [t('output'), usage?.output_tokens],
  ]
  return (
    <Tiles>
      {[...parts, [t('total'), exactSum(parts.map(([, part]) => part))] as const].map(([label, value]) => (
        <Tile key={label} label={label}>
          <Value why={why}>{count(value)}</Value>
        </Tile>
      ))}
    </Tiles>
  )
}
