import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Suspense } from 'react'
import { reportQuery, runQuery } from '../../api/queries'
import type { Metrics, Report, Run } from '../../api/types'
import { lazily } from '../../components/lazily'
import { Loaded, Loading } from '../../components/Notices'
import { Section } from '../../components/Page'
import { Reason } from '../../components/Reason'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { Term, type TermName } from '../../glossary/Term'
import { count, decimal, percent, usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts, type Translate } from '../../i18n/messages'
import { useSayings } from '../../i18n/sentences'
import { Interval } from './Interval'
import { messages } from './messages'
import { Benchmarks } from './benchmarks/Benchmarks'
import { Estimates } from './Estimates'
import { Judging } from './judging/Judging'
import { questionsOf } from './flow/questionsOf'
import { Routing } from './Routing'
import { figureOf } from './terms/figures'
import { messages as termMessages } from './terms/messages'
import { TokensAndSpend } from './spend/TokensAndSpend'
import { Times } from './times/Times'
import { WhatIf } from './whatif/WhatIf'

const RoutingFlow = lazily(() => import('./flow/RoutingFlow').then((module) => module.RoutingFlow))

/** What the report says: targets, benchmarks, routing, failures, outputs, continuity. */
export function ResultsTab() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const run = useQuery(runQuery(runId))
  const report = useQuery(reportQuery(runId, run.data?.updated_at ?? null))
  return (
    <Loaded query={report} what={t('whatReport')}>
      {(found) => <ReportView report={found} run={run.data} runId={runId} version={run.data?.updated_at ?? null} router={run.data?.manifest.targets.some((target) => target.kind === 'mom') ?? false} />}
    </Loaded>
  )
}

function ReportView({ report, run, runId, version, router }: { report: Report; run: Run | undefined; runId: string; version: number | null; router: boolean }) {
  const t = useTexts(messages)
  const navigate = useNavigate()
  const translated = useSayings(report.sayings)
  const targets = report.summary?.targets ?? []
  const preview = report.mode === 'preview'
  const replay = report.mode === 'replay'
  return (
    <>
      {preview && <p className="note">{t('previewOnly')}</p>}
      {replay ? (
        <Estimates rows={targets} />
      ) : (
        <Section title={t('comparison')} note={preview ? undefined : t('comparisonNote')}>
          <TargetTable rows={targets} benchmarks={report.benchmarks} preview={preview} />
        </Section>
      )}
      {!preview && !replay && (
        <Benchmarks rows={report.benchmarks} runId={runId} />
      )}
      {report.judging && <Judging judging={report.judging} />}
      <Suspense fallback={<Loading />}>
        <RoutingFlow
          runId={runId}
          version={version}
          preview={preview}
          onPick={(target, picked) => void navigate({ to: '/runs/$runId/questions', params: { runId }, search: questionsOf(target, picked) })}
        />
      </Suspense>
      <div className="columns">
        <Routing targets={targets} runId={runId} preview={preview} router={router} />
        <Triage targets={targets} runId={runId} />
      </div>
      {!preview && (
        <>
          {!replay && <Times runId={runId} version={version} />}
          <Outputs targets={targets} />
          <Continuity targets={targets} />
          {!replay && <TokensAndSpend targets={targets} />}
          {!replay && run && <WhatIf run={run} />}
        </>
      )}
      {report.limitations.length > 0 && (
        <Section title={t('limitations')}>
          <ul className="sentences">
            {report.limitations.map((sentence) => (
              // What the plan adds are its author's own words.
              <li key={sentence} data-verbatim={report.sayings.some((saying) => saying.text === sentence) ? undefined : true}>
                {translated(sentence)}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  )
}

function unknownCost(t: Translate<typeof messages.en>, row: Metrics): string {
  return t('costWhy', { known: usd(row.known_cost_usd) ?? '' })
}

function TargetTable({ rows, benchmarks, preview }: { rows: Metrics[]; benchmarks: Metrics[]; preview: boolean }) {
  const t = useTexts(messages)
  const terms = useTexts(termMessages)
  const said = (term: TermName) => rows.map((row) => ({ name: row.id, text: figureOf(term, row, benchmarks, terms) }))
  return (
    <Scroll label={t('comparison')}>
      <table className="table" aria-label={t('comparison')}>
        <thead>
          <tr>
            <th scope="col">{t('target')}</th>
            {!preview && (
              <>
                <th scope="col" className="num">
                  <Term term="macro" figures={said('macro')}>
                    {t('macro')}
                  </Term>
                </th>
                <th scope="col">
                  <Term term="accuracy" figures={said('accuracy')}>
                    {t('accuracy')}
                  </Term>
                </th>
                <th scope="col" className="num">
                  <Term term="denominator" figures={said('denominator')}>
                    {t('correct')}
                  </Term>
                </th>
              </>
            )}
            {preview && (
              <th scope="col" className="num">
                {t('planned')}
              </th>
            )}
            <th scope="col" className="num">
              <Term term="failures" figures={said('failures')}>
                {t('failures')}
              </Term>
            </th>
            {!preview && (
              <>
                <th scope="col" className="num">
                  <Term term="observed" figures={said('observed')}>
                    {t('observed')}
                  </Term>
                </th>
                <th scope="col" className="num">
                  <Term term="neutral" figures={said('neutral')}>
                    {t('neutral')}
                  </Term>
                </th>
                <th scope="col" className="num">
                  <Term term="latency" figures={said('latency')}>
                    {t('latency')}
                  </Term>
                </th>
                <th scope="col" className="num">
                  <Term term="ttft" figures={said('ttft')}>
                    {t('ttft')}
                  </Term>
                </th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">{row.id}</th>
              {!preview && (
                <>
                  <td className="num">
                    <Value>{percent(row.macro_accuracy)}</Value>
                  </td>
                  <td>
                    <Interval value={row.accuracy} ends={row.accuracy_ci95} />
                  </td>
                  <td className="num">
                    <Value>{row.correct === null ? null : `${count(row.correct)} / ${count(row.total)}`}</Value>
                    {row.pending > 0 && row.correct !== null && row.total > row.pending && (
                      <span className="note block">{t('sofar', { share: percent(row.correct / (row.total - row.pending)) ?? '', n: count(row.total - row.pending) ?? '' })}</span>
                    )}
                  </td>
                </>
              )}
              {preview && <td className="num">{count(row.total)}</td>}
              <td className="num">{count(row.failed)}</td>
              {!preview && (
                <>
                  <td className="num">
                    <Value why={unknownCost(t, row)}>{usd(row.cost_usd)}</Value>
                  </td>
                  <td className="num">
                    <Value why={unknownCost(t, row)}>{usd(row.cache_neutral_cost_usd)}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('timeNote')}>{pair(duration(row.latency_p50_s), duration(row.latency_p95_s))}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('timeNote')}>{duration(row.ttft_p50_s)}</Value>
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function pair(one: string | null, other: string | null): string | null {
  return one === null || other === null ? null : `${one} / ${other}`
}

function Triage({ targets, runId }: { targets: Metrics[]; runId: string }) {
  const t = useTexts(messages)
  const rows = targets.flatMap((target) => Object.entries(target.failure_reasons).map(([reason, n]) => ({ target: target.id, reason, n })))
  rows.sort((one, other) => other.n - one.n)
  return (
    <Section title={t('triage')}>
      {rows.length === 0 ? (
        <p className="note">{t('triageNone')}</p>
      ) : (
        <table className="table" aria-label={t('triage')}>
          <thead>
            <tr>
              <th scope="col">{t('reason')}</th>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">
                {t('failures')}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ target, reason, n }) => (
              <tr key={`${target} ${reason}`}>
                <th scope="row">
                  <Reason reason={reason} />
                </th>
                <td>{target}</td>
                <td className="num">
                  <Link to="/runs/$runId/questions" params={{ runId }} search={{ target, reason }} aria-label={t('triageShow', { n })}>
                    {count(n)}
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  )
}

function Outputs({ targets }: { targets: Metrics[] }) {
  const t = useTexts(messages)
  const rate = (part: number, of: number) => (of === 0 ? null : `${count(part)} / ${count(of)} (${percent(part / of)})`)
  return (
    <Section title={t('diagnostics')}>
      <Scroll label={t('diagnostics')}>
        <table className="table" aria-label={t('diagnostics')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col">{t('outputLimit')}</th>
              <th scope="col">
                <Term term="format" figures={targets.map(({ id, output_diagnostics: found }) => ({ name: id, text: (found?.strict_format && rate(found.strict_format.failed_cases, found.strict_format.checked_cases)) || null }))}>
                  {t('formatFailed')}
                </Term>
              </th>
              <th scope="col">{t('finishReasons')}</th>
            </tr>
          </thead>
          <tbody>
            {targets.map(({ id, output_diagnostics: found }) => (
              <tr key={id}>
                <th scope="row">{id}</th>
                <td>
                  <Value why={t('notAssessed')}>{found && rate(found.output_limit_cases, found.result_cases)}</Value>
                </td>
                <td>
                  <Value why={t('notAssessed')}>{found?.strict_format && rate(found.strict_format.failed_cases, found.strict_format.checked_cases)}</Value>
                </td>
                <td>
                  {Object.entries(found?.subject_calls?.finish_reasons ?? {}).map(([reason, n]) => (
                    <span key={reason} className="block">
                      {reason}: {count(n)}
                    </span>
                  ))}
                  {(found?.subject_calls?.unknown_finish_reason ?? 0) > 0 && (
                    <span className="block soft">
                      {t('unknownFinish')}: {count(found?.subject_calls?.unknown_finish_reason)}
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}

function Continuity({ targets }: { targets: Metrics[] }) {
  const t = useTexts(messages)
  const terms = useTexts(termMessages)
  return (
    <Section title={t('continuity')} note={t('continuityNote')}>
      <Scroll label={t('continuity')}>
        <table className="table" aria-label={t('continuity')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">
                {t('multiTasks')}
              </th>
              <th scope="col" className="num">
                {t('switched')}
              </th>
              <th scope="col" className="num">
                {t('switchedAccuracy')}
              </th>
              <th scope="col" className="num">
                {t('switches')}
              </th>
              <th scope="col" className="num">
                <Term term="cacheRead" figures={targets.map((row) => ({ name: row.id, text: figureOf('cacheRead', row, [], terms) }))}>
                  {t('cacheRate')}
                </Term>
              </th>
            </tr>
          </thead>
          <tbody>
            {targets.map(({ id, continuity, cache_read: cache }) => {
              const several = continuity ? continuity.multi_inference_tasks + continuity.multi_request_tasks : null
              const both = continuity && [percent(continuity.switched_accuracy), percent(continuity.unswitched_accuracy)]
              return (
                <tr key={id}>
                  <th scope="row">{id}</th>
                  <td className="num">
                    <Value>{count(several)}</Value>
                  </td>
                  <td className="num">
                    <Value>{count(continuity?.switched_tasks)}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('noMulti')}>{both && (both[0] ?? both[1]) !== null ? `${both[0] ?? '—'} / ${both[1] ?? '—'}` : null}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('noMulti')}>{decimal(continuity?.mean_switches_per_task)}</Value>
                  </td>
                  <td className="num">
                    <Value why={t('cacheWhy', { n: count(cache?.unreported_calls) ?? '' })}>{percent(cache?.cache_read_rate)}</Value>
                    {cache && cache.unreported_calls > 0 && cache.reported_calls > 0 && (
                      <span className="note block">{t('cacheWhy', { n: count(cache.unreported_calls) ?? '' })}</span>
                    )}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}
