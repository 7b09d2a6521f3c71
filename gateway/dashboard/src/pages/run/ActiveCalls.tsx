import { useQuery } from '@tanstack/react-query'
import { get } from '../../api/client'
import { ACTIVE_MS } from '../../api/queries'
import { Stale } from '../../components/Notices'
import { Section } from '../../components/Page'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { useNow } from '../../components/useNow'
import { bytes, count } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { useRole } from './useRole'

const SHOWN = 5

/** What the calls in flight are doing. */
export function ActiveCalls({ runId }: { runId: string }) {
  const t = useTexts(messages)
  const role = useRole()
  const now = useNow(1_000) / 1000
  const calls = useQuery({
    queryKey: ['active-calls', runId],
    queryFn: ({ signal }) => get('/runs/{run_id}/calls', { path: { run_id: runId }, query: { active: true, limit: SHOWN }, signal }),
    refetchInterval: ACTIVE_MS,
  })
  if (!calls.data || calls.data.calls.length === 0) return null
  const phase = (name: string) => {
    const key = `phase_${name}` as Parameters<typeof t>[0]
    const words = t(key)
    return words === key ? name : words
  }
  const since = (moment: number | null | undefined) => (moment ? duration(Math.max(0, now - moment)) : null)
  return (
    <Section title={t('activity')} note={t('activityNote')}>
      {calls.error && <Stale error={calls.error} />}
      <Scroll label={t('activity')}>
        <table className="table" aria-label={t('activity')}>
          <thead>
            <tr>
              <th scope="col">{t('case')}</th>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('role')}</th>
              <th scope="col">{t('phase')}</th>
              <th scope="col">{t('elapsed')}</th>
              <th scope="col">{t('quiet')}</th>
              <th scope="col">{t('received')}</th>
            </tr>
          </thead>
          <tbody>
            {calls.data.calls.map((call) => (
              <tr key={call.id}>
                <th scope="row">{call.case_id}</th>
                <td>{call.target_id}</td>
                <td>{role(call.role)}</td>
                <td>
                  <Value>{call.activity && phase(call.activity.phase)}</Value>
                </td>
                <td>
                  <Value>{since(call.started_at)}</Value>
                </td>
                <td>
                  <Value>{since(call.activity?.last_activity_at)}</Value>
                </td>
                <td>
                  <Value>{bytes(call.activity?.received_bytes)}</Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {calls.data.total > SHOWN && <p className="note">{t('activityMore', { n: count(calls.data.total - SHOWN) ?? '' })}</p>}
    </Section>
  )
}
