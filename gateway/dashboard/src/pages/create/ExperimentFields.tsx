import { Select, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useTexts } from '../../i18n/messages'
import { experimentsQuery } from '../experiments/queries'
import { messages as experimentTexts } from '../experiments/messages'
import type { ExperimentPart, Role } from './experimentPart'
import { messages } from './messages'

/** The experiment that a run is to belong to, and as what. Nothing is shown where there are no experiments. */
export function ExperimentFields({ part, roles, onChange }: { part: ExperimentPart | null; roles: readonly Role[]; onChange: (part: ExperimentPart | null) => void }) {
  const t = useTexts(messages)
  const words = useTexts(experimentTexts)
  const experiments = useQuery(experimentsQuery(undefined))
  const found = experiments.data?.experiments ?? []
  // A role that no longer fits the run would be refused: the first that fits takes its place.
  const misfit = part !== null && roles.length > 0 && !roles.includes(part.role)
  useEffect(() => {
    if (misfit) onChange({ ...part, role: roles[0]! })
  }, [misfit, part, roles, onChange])
  if (found.length === 0 && part === null) return null
  const data = found.map(({ id, name }) => ({ value: id, label: name }))
  if (part && !found.some(({ id }) => id === part.id)) data.push({ value: part.id, label: part.id })
  return (
    <div className="filters">
      <Select
        label={t('experiment')}
        placeholder={t('noExperiment')}
        clearable
        data={data}
        value={part?.id ?? null}
        onChange={(id) => onChange(id === null ? null : { id, role: part?.role ?? roles[0] ?? 'candidate', hypothesis: part?.hypothesis ?? '' })}
      />
      {part && (
        <>
          <Select label={t('role')} allowDeselect={false} data={roles.map((role) => ({ value: role, label: words(`role_${role}`) }))} value={part.role} onChange={(role) => role && onChange({ ...part, role: role as Role })} />
          <Textarea label={t('whatChanged')} value={part.hypothesis} maxLength={2000} autosize={false} rows={1} className="filter-text" onChange={(event) => onChange({ ...part, hypothesis: event.currentTarget.value })} />
        </>
      )}
    </div>
  )
}
