import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get } from '../../../api/client'
import type { CallRow, Run } from '../../../api/types'
import { useSession } from '../../../app/session'
import { Loaded } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { Pager } from '../../../components/Pager'
import { Scroll } from '../../../components/Scroll'
import { Reason } from '../../../components/Reason'
import { StatusPill } from '../../../components/Status'
import { Value } from '../../../components/Value'
import { usd } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import { SettleForm, verdictOf } from './SettleForm'

const PAGE = 25

/** Calls that ended without a known cost, and what operators have said of them since. */
export function UnknownCalls({ run }: { run: Run }) {
  const t = useTexts(messages)
  const session = useSession()
  const [page, setPage] = useState(0)
  const [open, setOpen] = useState<CallRow | null>(null)
  const calls = useQuery({
    queryKey: ['unknown-calls', run.id, run.updated_at, page],
    queryFn: ({ signal }) => get('/runs/{run_id}/calls', { path: { run_id: run.id }, query: { unknown_cost: true, offset: page * PAGE, limit: PAGE }, signal }),
    placeholderData: (previous) => previous,
  })
  const operator = session.can_write && (session.role === 'admin' || session.role === 'local')
  return (
    <Section title={t('settle')} note={t('settleNote')}>
      <Loaded query={calls} what={t('whatCalls')}>
        {(found) =>
          found.total === 0 ? (
            <p className="note">{t('noUnknown')}</p>
          ) : (
            <>
              {!operator && <p className="note">{t('operatorsOnly')}</p>}
              <CallTable run={run} calls={found.calls} onSettle={operator ? setOpen : undefined} />
              <Pager label={t('settle')} page={page} size={PAGE} total={found.total} onPage={setPage} />
            </>
          )
        }
      </Loaded>
      {open && <SettleForm run={run} call={open} onClose={() => setOpen(null)} />}
    </Section>
  )
}

function CallTable({ run, calls, onSettle }: { run: Run; calls: CallRow[]; onSettle: ((call: CallRow) => void) | undefined }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('settle')}>
      <table className="table" aria-label={t('settle')}>
        <thead>
          <tr>
            <th scope="col">{t('call')}</th>
            <th scope="col">{t('status')}</th>
            <th scope="col">{t('reason')}</th>
            <th scope="col">{t('bounds')}</th>
            <th scope="col">{t('settled')}</th>
            {onSettle && <th scope="col" aria-hidden="true" />}
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.id}>
              <th scope="row">
                <Link to="/runs/$runId/calls" params={{ runId: run.id }} search={{ call: call.id }}>
                  {call.case_id} · {call.target_id}
                </Link>
              </th>
              <td>
                <StatusPill status={call.status ?? ''} />
              </td>
              <td>{call.reason ? <Reason reason={call.reason} /> : <Value>{null}</Value>}</td>
              <td className="figure">
                <Value>{boundsOf(call)}</Value>
              </td>
              <td>
                <Value why={t('notSettled')}>{call.settlement ? t(`verdict_${verdictOf(call.settlement)}`) : null}</Value>
                {call.settlement && call.settlement.cost_usd !== null && <span className="note block">{usd(call.settlement.cost_usd)}</span>}
              </td>
              {onSettle && (
                <td>
                  <Button size="compact-sm" variant="default" onClick={() => onSettle(call)} aria-label={t('settleTitle', { case: call.case_id, target: call.target_id })}>
                    {t('settleCall')}
                  </Button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function boundsOf(call: CallRow): string | null {
  const [low, high] = [usd(call.cost_lower_usd), usd(call.cost_upper_usd ?? call.reserved_usd)]
  return high === null ? null : `${low ?? usd(0)} – ${high}`
}
