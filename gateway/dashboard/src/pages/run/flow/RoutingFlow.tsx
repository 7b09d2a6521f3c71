import { SegmentedControl, Select } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { get, type Answer } from '../../../api/client'
import type { Measure } from '../../../charts/flow'
import type { Picked } from '../../../charts/Sankey'
import { Loaded, Loading } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { count } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { FlowTable } from './FlowTable'
import '../../../charts/charts.css'
import { messages } from './messages'

const Sankey = lazy(() => import('../../../charts/Sankey').then((module) => ({ default: module.Sankey })))
export type Flow = Answer<'/runs/{run_id}/routing'>

/** Read again when the run changed; `version` is what says so. */
export const flowQuery = (runId: string, version: number | null) =>
  queryOptions({
    queryKey: ['routing', runId, version],
    queryFn: ({ signal }) => get('/runs/{run_id}/routing', { path: { run_id: runId }, signal, deadlineMs: 60_000 }),
    placeholderData: (previous) => previous,
  })

export type { Picked }

/** Where a run's questions went. `onPick` is told which target and which ends of a band were opened. */
export function RoutingFlow({ runId, version, onPick }: { runId: string; version: number | null; onPick?: (target: string | undefined, picked: Picked) => void }) {
  const t = useTexts(messages)
  const flow = useQuery(flowQuery(runId, version))
  return (
    <Section title={t('title')} note={t('note')}>
      <Loaded query={flow} what={t('what')}>
        {(found) => <FlowView flow={found} onPick={onPick} />}
      </Loaded>
    </Section>
  )
}

function FlowView({ flow, onPick }: { flow: Flow; onPick?: ((target: string | undefined, picked: Picked) => void) | undefined }) {
  const t = useTexts(messages)
  const targets = [...new Set(flow.rows.map((row) => row.target_id))]
  // A router's flow says most: it is what is shown first.
  const routed = targets.find((target) => flow.rows.some((row) => row.target_id === target && row.decision !== null))
  const [chosen, setChosen] = useState<string | null | undefined>(undefined)
  const [measure, setMeasure] = useState<Measure>('questions')
  const target = chosen === undefined ? (routed ?? (targets.length === 1 ? targets[0] : undefined)) : (chosen ?? undefined)
  const rows = flow.rows.filter((row) => target === undefined || row.target_id === target)
  const unknown = rows.reduce((sum, row) => sum + row.unknown_cost_count, 0)
  const paid = rows.some((row) => row.known_cost_usd > 0)
  return (
    <>
      <div className="filters">
        {targets.length > 1 && (
          <Select
            label={t('target')}
            placeholder={t('all')}
            data={targets}
            value={target ?? null}
            clearable
            onChange={setChosen}
          />
        )}
        <SegmentedControl
          aria-label={t('measure')}
          value={measure}
          onChange={(value) => setMeasure(value as Measure)}
          data={[
            { value: 'questions', label: t('questions') },
            { value: 'dollars', label: t('dollars') },
          ]}
        />
      </div>
      {measure === 'dollars' && unknown > 0 && <p className="note">{t('unknownCosts', { n: count(unknown) ?? '' })}</p>}
      {measure === 'dollars' && !paid ? (
        <p className="note">{t('nothingPaid')}</p>
      ) : (
        <Suspense fallback={<Loading />}>
          <Sankey rows={rows} measure={measure} onPick={onPick && ((picked) => onPick(target, picked))} />
        </Suspense>
      )}
      <FlowTable rows={rows} />
    </>
  )
}
