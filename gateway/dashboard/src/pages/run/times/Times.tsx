import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Suspense } from 'react'
import { get, type Answer } from '../../../api/client'
import { lazily } from '../../../components/lazily'
import { Loaded, Loading } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { messages as words } from '../../../charts/messages'
import { count } from '../../../format/numbers'
import { duration } from '../../../format/time'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'

const Ecdf = lazily(() => import('../../../charts/Ecdf').then((module) => module.Ecdf))
type TargetTimes = Answer<'/runs/{run_id}/times'>['targets'][number]

/** Read again when the run changed; `version` is what says so. */
const timesQuery = (runId: string, version: number | null) =>
  queryOptions({
    queryKey: ['times', runId, version],
    queryFn: ({ signal }) => get('/runs/{run_id}/times', { path: { run_id: runId }, signal, deadlineMs: 60_000 }),
    placeholderData: (previous) => previous,
  })

/** How long each target's answers took, and how long their first tokens. */
export function Times({ runId, version }: { runId: string; version: number | null }) {
  const t = useTexts(messages)
  const times = useQuery(timesQuery(runId, version))
  return (
    <Section title={t('title')} note={t('note')}>
      <Loaded query={times} what={t('what')}>
        {(found) => <TimesView runId={runId} targets={found.targets} />}
      </Loaded>
    </Section>
  )
}

function TimesView({ runId, targets }: { runId: string; targets: TargetTimes[] }) {
  const t = useTexts(messages)
  if (targets.every((row) => row.answer_count === 0 && row.first_token_count === 0)) return <p className="note">{t('none')}</p>
  const lines = (of: (row: TargetTimes) => number[]) => targets.map((row) => ({ key: row.target_id, name: row.target_id, quantiles: of(row), median: at(of(row), 50), high: at(of(row), 95) }))
  return (
    <>
      <div className="charts-two">
        <Suspense fallback={<Loading />}>
          <Ecdf title={t('answers')} lines={lines((row) => row.answer_quantiles_s)} />
          <Ecdf title={t('firstTokens')} lines={lines((row) => row.first_token_quantiles_s)} />
        </Suspense>
      </div>
      <TimesTable runId={runId} targets={targets} />
    </>
  )
}

function TimesTable({ runId, targets }: { runId: string; targets: TargetTimes[] }) {
  const t = useTexts(messages)
  const word = useTexts(words)
  const shown = (quantiles: number[], share: number) => <Value>{duration(at(quantiles, share))}</Value>
  return (
    <details className="twin">
      <summary>{word('asTable')}</summary>
      <Scroll label={t('title')}>
        <table className="table" aria-label={t('title')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              {[t('answers'), t('firstTokens')].flatMap((name) => [
                <th scope="col" className="num" key={`${name} n`}>{`${name}: ${t('n')}`}</th>,
                ...SHARES.map((share) => <th scope="col" className="num" key={`${name} ${share}`}>{`p${share}`}</th>),
              ])}
              <th scope="col">{t('list')}</th>
            </tr>
          </thead>
          <tbody>
            {targets.map((row) => (
              <tr key={row.target_id}>
                <th scope="row">{row.target_id}</th>
                <td className="num">{count(row.answer_count)}</td>
                {SHARES.map((share) => <td className="num" key={`a${share}`}>{shown(row.answer_quantiles_s, share)}</td>)}
                <td className="num">{count(row.first_token_count)}</td>
                {SHARES.map((share) => <td className="num" key={`f${share}`}>{shown(row.first_token_quantiles_s, share)}</td>)}
                <td>
                  <Link to="/runs/$runId/questions" params={{ runId }} search={{ target: row.target_id, by: 'latency', desc: true }} aria-label={t('tail', { target: row.target_id })}>
                    {t('tailShort')}
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  )
}

const SHARES = [50, 90, 95, 99]

/** The quantile at `share` percent; `null` when there is none. */
function at(quantiles: readonly number[], share: number): number | null {
  return quantiles[share] ?? null
}
