import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../../api/client'
import { ACTIVE_MS } from '../../api/queries'
import type { CallRow, Outcome, Run } from '../../api/types'
import { Dialogue } from '../../answers/Dialogue'
import { GradeView } from '../../answers/GradeView'
import { DetailPane, type Walk } from '../../components/DetailPane'
import { Extracted, type Against } from '../../components/Extracted'
import { Fault } from '../../components/Fault'
import { JsonBlock } from '../../components/JsonBlock'
import { Empty, Loaded } from '../../components/Notices'
import { Tile, Tiles } from '../../components/Page'
import { Question, type Pick } from '../../components/Question'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { decimal, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useEnd } from '../../i18n/ends'
import { NoteBox } from '../../kept/Notes'
import { CallTexts } from './CallTexts'
import { messages } from './messages'
import { useRole } from './useRole'
import { RouteView } from './RouteView'
import { Verdict } from './Verdict'

/** One cell: what was asked, what came back, how it was judged. Bodies are read only now. */
export function OutcomePane({ run, cell, walk, onClose, active }: { run: Run; cell: number; walk: Walk; onClose: () => void; active: boolean }) {
  const t = useTexts(messages)
  const outcome = useQuery({
    queryKey: ['outcome', run.id, cell],
    queryFn: async ({ signal }) => (await get('/runs/{run_id}/results', { path: { run_id: run.id }, query: { cell }, signal })).results,
    refetchInterval: (query) => (active && query.state.data?.length === 0 ? ACTIVE_MS : false),
  })
  const found = outcome.data?.[0]
  return (
    <DetailPane title={found ? `${found.case_id} · ${found.target_id}` : `#${cell}`} walk={walk} onClose={onClose}>
      <Loaded query={outcome} what={t('whatQuestion')}>
        {(rows) => (rows[0] ? <OutcomeView run={run} outcome={rows[0]} /> : <Empty title={t('noRows')} />)}
      </Loaded>
    </DetailPane>
  )
}

function OutcomeView({ run, outcome }: { run: Run; outcome: Outcome }) {
  const t = useTexts(messages)
  const end = useEnd()
  const question = useQuery({
    queryKey: ['question', run.id, outcome.case_id],
    queryFn: ({ signal }) => get('/runs/{run_id}/question', { path: { run_id: run.id }, query: { case_id: outcome.case_id }, signal }),
    staleTime: Infinity,
  })
  const calls = useQuery({
    queryKey: ['calls-of-cell', run.id, outcome.case_id, outcome.target_id],
    queryFn: ({ signal }) => get('/runs/{run_id}/calls', { path: { run_id: run.id }, query: { case_id: outcome.case_id, target_id: outcome.target_id }, signal }),
    enabled: run.manifest.mode !== 'preview',
  })
  const others = useOthers(run, outcome)
  if (run.manifest.mode === 'preview') {
    return (
      <>
        <Fault reason={outcome.reason} text={outcome.error} />
        <RouteView outcome={outcome} />
        <Loaded query={question} what={t('whatQuestion')}>
          {(asked) => <Question question={asked} />}
        </Loaded>
        <JsonBlock title={t('routeDocument')} value={outcome.details} />
      </>
    )
  }
  return (
    <>
      <Tiles>
        <Tile label={t('verdict')} note={outcome.reason && end(outcome.reason)}>
          <Verdict correct={outcome.correct} status={outcome.status} />
        </Tile>
        <Tile label={t('score')}>
          <Value>{decimal(outcome.score, 3)}</Value>
        </Tile>
        <Tile label={t('cost')}>
          <Value>{usd(outcome.cost_usd)}</Value>
        </Tile>
        <Tile label={t('latencyOne')}>
          <Value why={t('timeNote')}>{duration(outcome.subject_latency_s)}</Value>
        </Tile>
      </Tiles>
      <Fault reason={outcome.reason} text={outcome.error} />
      <Loaded query={question} what={t('whatQuestion')}>
        {(asked) => <Question question={asked} picks={[outcome, ...others].filter((row) => row.status === 'completed').map(pickOf)} />}
      </Loaded>
      <h3>{t('extracted')}</h3>
      <Extracted answer={outcome.answer} against={rightOf(outcome, others)} />
      <GradeView details={outcome.details} />
      <Loaded query={calls} what={t('whatCalls')}>
        {(page) => <AnswersOf run={run} calls={page.calls} />}
      </Loaded>
      <NoteBox runId={run.id} outcome={outcome} />
      <Others runId={run.id} rows={others} />
      <JsonBlock title={t('graderDetails')} value={outcome.details} />
    </>
  )
}

function AnswersOf({ run, calls }: { run: Run; calls: CallRow[] }) {
  const t = useTexts(messages)
  const role = useRole()
  const last = calls.filter((call) => call.role === 'subject').at(-1)
  return (
    <>
      {last && <CallTexts runId={run.id} callId={last.id} />}
      {calls.length > 1 && <Dialogue runId={run.id} calls={calls} />}
      <h3>{t('callsOfCell')}</h3>
      <ul className="plain-list">
        {calls.map((call) => (
          <li key={call.id}>
            <Link to="/runs/$runId/calls" params={{ runId: run.id }} search={{ call: call.id, case: call.case_id, target: call.target_id }}>
              {t('callOf', { n: call.ordinal + 1, role: role(call.role), model: call.selected_model ?? call.model ?? call.target_id })}
            </Link>{' '}
            <span className="soft">
              <Value>{usd(call.cost_usd)}</Value> · <Value why={t('timeNote')}>{duration(call.latency_s)}</Value>
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The same case on the run's other targets. */
function useOthers(run: Run, outcome: Outcome): Outcome[] {
  const others = useQuery({
    queryKey: ['same-case', run.id, outcome.case_id],
    queryFn: ({ signal }) => get('/runs/{run_id}/results', { path: { run_id: run.id }, query: { q: outcome.case_id.slice(0, 200) }, signal }),
    enabled: run.manifest.targets.length > 1,
  })
  return (others.data?.results ?? []).filter((row) => row.case_id === outcome.case_id && row.cell !== outcome.cell)
}

function pickOf(row: Outcome): Pick {
  return { name: row.target_id, answer: row.answer, correct: row.correct }
}

/** Reference answers never come here: a wrong answer is held against another target's right one. */
function rightOf(outcome: Outcome, others: readonly Outcome[]): Against | undefined {
  const right = outcome.correct === true ? undefined : others.find((row) => row.correct === true)
  return right && { name: `${right.target_id} ✓`, answer: right.answer }
}

function Others({ runId, rows }: { runId: string; rows: Outcome[] }) {
  const t = useTexts(messages)
  if (rows.length === 0) return null
  return (
    <>
      <h3>{t('others')}</h3>
      <Scroll label={t('others')}>
        <table className="table" aria-label={t('others')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('verdict')}</th>
              <th scope="col">{t('model')}</th>
              <th scope="col" className="num">
                {t('cost')}
              </th>
              <th scope="col" className="num">
                {t('latencyOne')}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.cell}>
                <th scope="row">
                  <Link from="/runs/$runId/questions" to="/runs/$runId/questions" params={{ runId }} search={(old) => ({ ...old, cell: row.cell, at: undefined })}>
                    {row.target_id}
                  </Link>
                </th>
                <td>
                  <Verdict correct={row.correct} status={row.status} />
                </td>
                <td>
                  <Value>{row.model}</Value>
                </td>
                <td className="num">
                  <Value>{usd(row.cost_usd)}</Value>
                </td>
                <td className="num">
                  <Value why={t('timeNote')}>{duration(row.subject_latency_s)}</Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  )
}
