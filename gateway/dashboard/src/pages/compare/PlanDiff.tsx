import { Select } from '@mantine/core'
import { useMemo } from 'react'
import type { Run } from '../../api/types'
import { Loading } from '../../components/Notices'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { runName } from './names'
import { equalPlaces, planChanges, type PlanChange } from './planDiff'
import type { Comparison, ComparisonReport } from './queries'
import type { CompareSearch } from './search'

interface Props {
  report: ComparisonReport
  row: Comparison
  runs: Map<string, Run>
  against: string | undefined
  onChange: (part: Partial<CompareSearch>) => void
}

/** What the plans of two of the compared runs do not have in common. */
export function PlanDiff({ report, row, runs, against, onChange }: Props) {
  const t = useTexts(messages)
  const others = [report.baseline_run_id, ...report.candidates.map((run) => run.run_id)].filter((id) => id !== row.candidate_run_id)
  const beforeId = against !== undefined && others.includes(against) ? against : report.baseline_run_id
  const [before, after] = [runs.get(beforeId), runs.get(row.candidate_run_id)]
  return (
    <Section title={t('plan')}>
      <Select
        label={t('before')}
        data={others.map((id) => ({ value: id, label: runName(runs, id) }))}
        value={beforeId}
        allowDeselect={false}
        onChange={(value) => onChange({ against: value === null || value === report.baseline_run_id ? undefined : value })}
      />
      <p className="note">
        {t('after')}: {runName(runs, row.candidate_run_id)}
      </p>
      {before && after ? <Changes before={before} after={after} /> : <Loading what={t('whatPlan')} />}
    </Section>
  )
}

function Changes({ before, after }: { before: Run; after: Run }) {
  const t = useTexts(messages)
  const { changes, equal } = useMemo(
    () => ({ changes: planChanges(before.manifest, after.manifest), equal: equalPlaces(before.manifest, after.manifest) }),
    [before, after],
  )
  if (changes.length === 0) return <p className="note">{t('samePlan')}</p>
  return (
    <>
      <p className="note">{t('planNote', { n: equal })}</p>
      <div className="scroll" tabIndex={0} role="region" aria-label={t('plan')}>
        <table className="table plan-table" aria-label={t('plan')}>
          <thead>
            <tr>
              <th scope="col">{t('place')}</th>
              <th scope="col">{t('before')}</th>
              <th scope="col">{t('after')}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change, index) => (
              <ChangeRow key={change.path} change={change} first={changes[index - 1]?.group !== change.group} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function ChangeRow({ change, first }: { change: PlanChange; first: boolean }) {
  const t = useTexts(messages)
  return (
    <>
      {first && (
        <tr className="group-row">
          <th scope="rowgroup" colSpan={3}>
            {t(`group_${change.group}`)}
          </th>
        </tr>
      )}
      <tr>
        <th scope="row" className="mono">
          {change.path}
        </th>
        <td className="mono plain">{change.before === null ? <span className="soft">{t('absent')}</span> : <del>{change.before}</del>}</td>
        <td className="mono plain">{change.after === null ? <span className="soft">{t('absent')}</span> : <ins>{change.after}</ins>}</td>
      </tr>
    </>
  )
}
