import { visible } from '../../format/visible'
import { Alert, Button, Select, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { post } from '../../api/client'
import { runsQuery } from '../../api/queries'
import type { RunRow } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { Section } from '../../components/Page'
import { command } from '../../format/command'
import { moment } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { fittingRoles, type Role } from '../create/experimentPart'
import { messages } from './messages'
import type { Member } from './queries'

const OFFERED = 50

/** Links a run that exists. A link never changes afterwards. */
export function AddRun({ id, members }: { id: string; members: readonly Member[] }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const session = useSession()
  const queries = useQueryClient()
  const [typed, setTyped] = useState('')
  const [runId, setRunId] = useState<string | null>(null)
  const [wanted, setWanted] = useState<Role | null>(null)
  const [hypothesis, setHypothesis] = useState('')
  const runs = useQuery(runsQuery({ q: typed || undefined, limit: OFFERED }))
  const offered = (runs.data?.runs ?? []).filter((run) => !members.some((member) => member.run_id === run.id))
  const run = offered.find((one) => one.id === runId)
  const roles = run ? rolesOf(run) : []
  const role = roles.find((name) => name === wanted) ?? roles[0]
  const attach = useMutation({
    mutationFn: (body: { run_id: string; role: Role; hypothesis: string }) => post('/experiments/{experiment_id}/runs', { path: { experiment_id: id }, body }),
    onSuccess: () => {
      setRunId(null)
      setHypothesis('')
      void queries.invalidateQueries({ queryKey: ['experiment', id] })
    },
  })
  if (!session.can_write) return <p className="note">{t('needRight')}</p>
  const line = run && role ? ['experiment', 'attach', id, '--run', run.id, '--role', role, ...(hypothesis ? ['--hypothesis', hypothesis] : [])] : null
  return (
    <Section title={t('add')}>
      <div className="filters">
        <Select
          label={t('run')}
          placeholder={t('runHint')}
          searchable
          clearable
          // The service searches; what it gave is all offered.
          filter={({ options }) => options}
          onSearchChange={(text) => setTyped(offered.some((one) => labelOf(one) === text) ? '' : text.slice(0, 200))}
          data={offered.map((one) => ({ value: one.id, label: labelOf(one) }))}
          value={run ? run.id : null}
          onChange={setRunId}
          className="filter-wide"
        />
        {run && role && (
          <>
            <Select label={t('part')} allowDeselect={false} data={roles.map((name) => ({ value: name, label: t(`role_${name}`) }))} value={role} onChange={(value) => setWanted(value as Role)} />
            <TextInput label={t('whatChanged')} value={hypothesis} maxLength={2000} onChange={(event) => setHypothesis(event.currentTarget.value)} className="filter-text" />
          </>
        )}
      </div>
      {attach.error && (
        <Alert color="red" variant="light" role="alert" title={t('attachFailed')}>
          {problem(attach.error)}
        </Alert>
      )}
      <div className="actions">
        <Button disabled={!run || !role} loading={attach.isPending} onClick={() => run && role && attach.mutate({ run_id: run.id, role, hypothesis })}>
          {t('attach')}
        </Button>
        {line && <CopyCommand text={command(...line)} />}
      </div>
    </Section>
  )
}

function rolesOf(run: RunRow): Role[] {
  const { mode, profile, targets } = run.manifest
  return fittingRoles(mode, profile, new Set(targets.map((target) => target.kind ?? '')), Boolean(run.parent_run_id))
}

function labelOf(run: RunRow): string {
  return `${visible(run.manifest.name || run.id)} · ${run.manifest.targets.map((target) => target.model).join(', ')} · ${moment(run.created_at)} · ${run.id.slice(-8)}`
}
