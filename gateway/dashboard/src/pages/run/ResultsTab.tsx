import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { Suspense } from 'react'
import { reportQuery, runQuery } from '../../api/queries'
import type { Report, Run } from '../../api/types'
import { lazily } from '../../components/lazily'
import { Loaded, Loading } from '../../components/Notices'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { useSayings } from '../../i18n/sentences'
import { messages } from './messages'
import { Benchmarks } from './benchmarks/Benchmarks'
import { Estimates } from './Estimates'
import { Judging } from './judging/Judging'
import { questionsOf } from './flow/questionsOf'
import { Continuity } from './results/Continuity'
import { Outputs } from './results/Outputs'
import { TargetTable } from './results/TargetTable'
import { Triage } from './results/Triage'
import { Routing } from './Routing'
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
