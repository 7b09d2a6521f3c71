import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Run } from '../../api/types'
import { Loading, Unavailable } from '../../components/Notices'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { runName } from './names'
import { equalPlaces, GROUPS, planChanges, type PlanChange } from './planDiff'
import type { Comparison, ComparisonReport } from './queries'
import { recipesQuery } from './recipes'
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
  const [one, other] = [useQuery(recipesQuery(before.id)), useQuery(recipesQuery(after.id))]
  const { changes, equal } = useMemo(() => {
    const whole = [
      { ...before.manifest, recipes: one.data },
      { ...after.manifest, recipes: other.data },
    ] as const
    return { changes: planChanges(...whole), equal: equalPlaces(...whole) }
  }, [before, after, one.data, other.data])
  const unread = one.error ?? other.error
  if (unread) return <Unavailable what={t('whatRecipes')} error={unread} />
  if (one.isPending || other.isPending) return <Loading what={t('whatPlan')} />
  if (changes.length === 0) return <p className="note">{t('samePlan')}</p>
  return (
    <>
      <p className="note">{t('planNote', { n: equal, before: before.plan_sha256.slice(0, 12), after: after.plan_sha256.slice(0, 12) })}</p>
      {GROUPS.map((group) => (
        <ChangeGroup key={group} title={t(`group_${group}`)} changes={changes.filter((change) => change.group === group)} />
      ))}
    </>
  )
}

function ChangeGroup({ title, changes }: { title: string; changes: PlanChange[] }) {
  if (changes.length === 0) return null
  return (
    <section className="plan-group" aria-label={title}>
      <h3>{title}</h3>
      <dl>
        {changes.map((change) => (
          <div key={change.path}>
            <dt className="mono">{change.path}</dt>
            <dd>
              <Side value={change.before} mark="del" />
              <span aria-hidden>→</span>
              <Side value={change.after} mark="ins" />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** One side of a change. A whole that the other side has not is folded: its name says most of it. */
function Side({ value, mark: Mark }: { value: string | null; mark: 'del' | 'ins' }) {
  const t = useTexts(messages)
  if (value === null) return <span className="soft">{t('absent')}</span>
  const lines = value.split('\n').length
  if (lines === 1) return <Mark className="mono wrap">{value}</Mark>
  return (
    <details className="fold">
      <summary>{t('whole', { n: lines })}</summary>
      <pre className="plain">{value}</pre>
    </details>
  )
}
