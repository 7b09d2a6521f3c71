import { Alert, Button, Select } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { address } from '../../api/client'
import type { Run } from '../../api/types'
import { PaperLink } from '../../components/PaperLink'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { fetchFile } from '../../files/download'
import { messages } from './messages'
import { keyOf, nameOf, runName } from './names'
import type { Comparison, ComparisonReport } from './queries'

/** Everything compared, as files: all of it, not what is on the screen. */
export function Exports({ report, runs }: { report: ComparisonReport; runs: Map<string, Run> }) {
  const t = useTexts(messages)
  return (
    <Section title={t('exports')}>
      <dl className="export-list">
        <div>
          <dt>{t('exportComparison')}</dt>
          <dd className="actions">
            <Files name="comparison" address={(format) => address('/comparisons/file', {}, { ...compared(report), format })} />
            <PaperLink href={address('/comparisons/report.html', {}, compared(report))} />
          </dd>
        </div>
        {report.comparisons.map((row) => (
          <div key={keyOf(row)}>
            <dt>{t('exportPairs', { name: nameOf(runs, report, row) })}</dt>
            <dd className="actions">
              <Files name="pairs" address={(format) => pairsAddress(report, row, format)} />
            </dd>
          </div>
        ))}
        <Training report={report} runs={runs} />
      </dl>
    </Section>
  )
}

function Files({ name, address: of }: { name: string; address: (format: string) => string }) {
  const t = useTexts(messages)
  return (['csv', 'json', 'parquet'] as const).map((format) => (
    <a key={format} className="button-link small" href={of(format)} download={`sr-bench-${name}.${format}`}>
      {t(format)}
    </a>
  ))
}

/** What names the comparison in an address. */
function compared(report: ComparisonReport) {
  return {
    baseline_run_id: report.baseline_run_id,
    candidate_run_ids: report.candidates.map((run) => run.run_id).join(','),
    margin_thousandths: report.margin === null ? undefined : Math.round(report.margin * 1000),
  }
}

function pairsAddress(report: ComparisonReport, row: Comparison, format: string): string {
  return address('/comparisons/pairs/file', {}, {
    baseline_run_id: report.baseline_run_id,
    baseline_target_id: row.baseline_target_id,
    candidate_run_id: row.candidate_run_id,
    candidate_target_id: row.candidate_target_id,
    format,
  })
}

/** Holdout questions are never exported: the service refuses, and its sentence is shown. */
function Training({ report, runs }: { report: ComparisonReport; runs: Map<string, Run> }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const ids = [report.baseline_run_id, ...report.candidates.map((run) => run.run_id)]
  const [runId, setRunId] = useState(ids[0]!)
  const chosen = ids.includes(runId) ? runId : ids[0]!
  const file = useMutation({
    mutationFn: (format: 'json' | 'parquet') => fetchFile(`/runs/${encodeURIComponent(chosen)}/export${format === 'json' ? '' : '/parquet'}`, `${chosen}-export.${format}`),
  })
  return (
    <div>
      <dt>{t('exportTraining')}</dt>
      <dd className="actions">
        <Select aria-label={t('training')} size="xs" data={ids.map((id) => ({ value: id, label: runName(runs, id) }))} value={chosen} allowDeselect={false} onChange={(value) => value && setRunId(value)} />
        {(['json', 'parquet'] as const).map((format) => (
          <Button key={format} size="compact-sm" variant="default" loading={file.isPending && file.variables === format} onClick={() => file.mutate(format)}>
            {t(format)}
          </Button>
        ))}
        {file.error && (
          <Alert color="red" variant="light" role="alert" className="notice">
            {t('exportFailed', { message: problem(file.error) })}
          </Alert>
        )}
      </dd>
    </div>
  )
}
