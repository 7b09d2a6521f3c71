import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../../../api/client'
import { ACTIVE_MS } from '../../../api/queries'
import { isActive, type Report, type Run, type RunRow } from '../../../api/types'
import { Loaded } from '../../../components/Notices'
import { Section, Tile, Tiles } from '../../../components/Page'
import { CellProgress } from '../../../components/Progress'
import { Scroll } from '../../../components/Scroll'
import { StatusPill } from '../../../components/Status'
import { Value } from '../../../components/Value'
import { count, usd } from '../../../format/numbers'
import { moment } from '../../../format/time'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'

/** A run, its parent, and every recovery of it; and what all attempts are as one. */
export function Lineage({ run }: { run: Run }) {
  const t = useTexts(messages)
  const lineage = useQuery({
    queryKey: ['lineage', run.id, run.updated_at],
    queryFn: async ({ signal }) => (await get('/runs/{run_id}/lineage', { path: { run_id: run.id }, signal })).runs,
    refetchInterval: (query) => (query.state.data?.some((one) => isActive(one.status)) ? ACTIVE_MS : false),
  })
  return (
    <Section title={t('lineage')} note={t('lineageNote')}>
      {run.parent_run_id && (
        <p>
          {t('attemptOf')}{' '}
          <Link to="/runs/$runId/recovery" params={{ runId: run.parent_run_id }}>
            {run.parent_run_id}
          </Link>
        </p>
      )}
      <Loaded query={lineage} what={t('whatLineage')}>
        {(runs) =>
          runs.length <= 1 ? (
            <p className="note">{t('noChildren')}</p>
          ) : (
            <>
              <Attempts runs={runs} />
              <Merged run={run} runs={runs} />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

function Attempts({ runs }: { runs: RunRow[] }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('lineage')}>
      <table className="table" aria-label={t('lineage')}>
        <thead>
          <tr>
            <th scope="col">{t('attempt')}</th>
            <th scope="col">{t('status')}</th>
            <th scope="col">{t('progress')}</th>
            <th scope="col">{t('created')}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((one, index) => (
            <tr key={one.id}>
              <th scope="row">
                {index === 0 ? (
                  t('thisRun')
                ) : (
                  <Link to="/runs/$runId/results" params={{ runId: one.id }}>
                    {one.id}
                  </Link>
                )}
              </th>
              <td>
                <StatusPill status={one.status} />
              </td>
              <td>
                <CellProgress progress={one.progress} />
              </td>
              <td>{moment(one.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Merged({ run, runs }: { run: Run; runs: RunRow[] }) {
  const t = useTexts(messages)
  const moments = runs.map((one) => one.updated_at)
  const merged = useQuery({
    queryKey: ['merged-report', run.id, moments],
    queryFn: ({ signal }) => get('/runs/{run_id}/report', { path: { run_id: run.id }, query: { lineage: true }, signal, deadlineMs: 60_000 }),
  })
  return (
    <>
      <h3>{t('merged')}</h3>
      <p className="note">{t('mergedNote')}</p>
      <Loaded query={merged} what={t('merged')}>
        {(report) => <MergedTiles report={report} />}
      </Loaded>
    </>
  )
}

function MergedTiles({ report }: { report: Report }) {
  const t = useTexts(messages)
  const targets = report.summary?.targets ?? []
  const sum = (part: (row: (typeof targets)[number]) => number) => targets.reduce((all, row) => all + part(row), 0)
  const costs = targets.map((row) => row.total_spend_usd)
  const spend = costs.every((cost) => cost !== null) ? costs.reduce<number>((all, cost) => all + (cost ?? 0), 0) : null
  const known = usd(sum((row) => row.known_cost_usd)) ?? ''
  const whole = targets.every((row) => row.complete)
  return (
    <Tiles>
      <Tile label={t('answered')} note={whole ? t('mergedComplete') : t('mergedOpen')}>
        {count(sum((row) => row.completed))} / {count(sum((row) => row.total))}
      </Tile>
      <Tile label={t('allSpend')}>
        <Value why={t('allSpendWhy', { known })}>{usd(spend)}</Value>
      </Tile>
    </Tiles>
  )
}
