import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { get, post } from '../../../api/client'
import type { Run } from '../../../api/types'
import { Loaded } from '../../../components/Notices'
import { Scroll } from '../../../components/Scroll'
import { Pill } from '../../../components/Status'
import { count, usd } from '../../../format/numbers'
import { moment } from '../../../format/time'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'

const SLOW_MS = 600_000

/** Reads every stream of a run again. The same run again is the same correction. */
export function useReconcile(runId: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () => post('/runs/{run_id}/reconcile-usage', { path: { run_id: runId }, body: {}, deadlineMs: SLOW_MS }),
    // Every figure of the run may have changed.
    onSuccess: () => void queries.invalidateQueries(),
  })
}

/** What was corrected, and that nothing was overwritten by it. */
export function Corrections({ run }: { run: Run }) {
  const t = useTexts(messages)
  const corrections = useQuery({
    queryKey: ['corrections', run.id],
    queryFn: async ({ signal }) => (await get('/runs/{run_id}/corrections', { path: { run_id: run.id }, signal })).corrections,
  })
  return (
    <Loaded query={corrections} what={t('whatCorrections')}>
      {(found) =>
        found.length === 0 ? (
          <p className="note">{t('noCorrections')}</p>
        ) : (
          <>
            <Scroll label={t('corrections')}>
              <table className="table" aria-label={t('corrections')}>
                <thead>
                  <tr>
                    <th scope="col">{t('when')}</th>
                    <th scope="col">{t('result')}</th>
                    <th scope="col">{t('calls')}</th>
                    <th scope="col" className="num">
                      {t('before')}
                    </th>
                    <th scope="col" className="num">
                      {t('after')}
                    </th>
                    <th scope="col" className="num">
                      {t('requests')}
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((one) => (
                    <tr key={one.id}>
                      <th scope="row">
                        {moment(one.created_at)} <code className="soft block">{one.id}</code>
                      </th>
                      <td>
                        <Pill tone={one.qualified ? 'good' : 'warn'}>{one.qualified ? t('verified') : t('partial')}</Pill>
                      </td>
                      <td className="figure">
                        {count(one.verified_call_count)} / {count(one.corrected_call_count)} / {count(one.unverifiable_call_count)}
                      </td>
                      <td className="num">{usd(one.original_known_spend_usd)}</td>
                      <td className="num">{usd(one.corrected_known_spend_usd)}</td>
                      <td className="num">{count(one.model_requests)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
            <p className="note">{t('kept')}</p>
          </>
        )
      }
    </Loaded>
  )
}
