import { Alert, Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { post } from '../../../api/client'
import { stringifyExact } from '../../../api/exactJson'
import type { Run } from '../../../api/types'
import { useSession } from '../../../app/session'
import { CopyCommand } from '../../../components/CopyCommand'
import { Section } from '../../../components/Page'
import { download, fetchFile } from '../../../files/download'
import { command } from '../../../format/command'
import { count } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { useProblem } from '../../../i18n/problems'
import { Corrections, useReconcile } from './Corrections'
import { messages } from './messages'

const SLOW_MS = 600_000

/** What can be done with the answers of a run that has ended, without asking anybody again. */
export function Reuse({ run }: { run: Run }) {
  const t = useTexts(messages)
  return (
    <Section title={t('title')} note={t('note')}>
      <Regrade run={run} />
      <Training run={run} />
      <Reconcile run={run} />
      <Corrections run={run} />
    </Section>
  )
}

function Deed({ name, note, error, line, children }: { name: string; note: string; error: Error | null; line: string; children: ReactNode }) {
  const t = useTexts(messages)
  const problem = useProblem()
  return (
    <div role="group" aria-label={name} className="deed">
      <p className="note">{note}</p>
      <div className="actions">
        {children}
        <CopyCommand text={line} />
      </div>
      {error && (
        <Alert color="red" variant="light" role="alert" title={t('failed')} className="notice">
          <p className="plain">{problem(error)}</p>
        </Alert>
      )}
    </div>
  )
}

function Regrade({ run }: { run: Run }) {
  const t = useTexts(messages)
  const session = useSession()
  const regrade = useMutation({ mutationFn: () => post('/runs/{run_id}/regrade', { path: { run_id: run.id }, body: {}, deadlineMs: SLOW_MS }) })
  const found = regrade.data
  return (
    <Deed name={t('regrade')} note={t('regradeNote')} error={regrade.error} line={command('regrade', run.id)}>
      <Button size="compact-sm" variant="default" disabled={!session.can_write} loading={regrade.isPending} onClick={() => regrade.mutate()}>
        {t('regrade')}
      </Button>
      {found && (
        <>
          <span role="status">
            {t('regraded', { n: count(found.changed_count) ?? '', all: count(found.results.length) ?? '', gained: count(found.gained_count) ?? '', lost: count(found.lost_count) ?? '' })}
          </span>
          <Button size="compact-sm" variant="default" onClick={() => download(`${run.id}-offline-regrade.json`, 'application/json', stringifyExact(found, 2))}>
            {t('regradeFile')}
          </Button>
        </>
      )}
    </Deed>
  )
}

function Training({ run }: { run: Run }) {
  const t = useTexts(messages)
  const session = useSession()
  const file = useMutation({ mutationFn: (format: 'json' | 'parquet') => fetchFile(`/runs/${encodeURIComponent(run.id)}/export${format === 'json' ? '' : '/parquet'}`, `${run.id}-export.${format}`) })
  return (
    <Deed name={t('training')} note={t('trainingNote')} error={file.error} line={command('export', run.id)}>
      {(['json', 'parquet'] as const).map((format) => (
        <Button key={format} size="compact-sm" variant="default" disabled={!session.can_write} loading={file.isPending && file.variables === format} onClick={() => file.mutate(format)} aria-label={`${t('training')}: ${t(format)}`}>
          {t(format)}
        </Button>
      ))}
    </Deed>
  )
}

function Reconcile({ run }: { run: Run }) {
  const t = useTexts(messages)
  const session = useSession()
  const reconcile = useReconcile(run.id)
  return (
    <Deed name={t('reconcile')} note={t('reconcileNote')} error={reconcile.error} line={command('reconcile-usage', run.id)}>
      <Button size="compact-sm" variant="default" disabled={!session.can_write} loading={reconcile.isPending} onClick={() => reconcile.mutate()}>
        {t('reconcile')}
      </Button>
    </Deed>
  )
}
