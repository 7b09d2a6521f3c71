import { SegmentedControl, Select } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Suspense, useState } from 'react'
import { get, type Answer } from '../../../api/client'
import type { Column, Measure } from '../../../charts/flow'
import type { Picked } from '../../../charts/Sankey'
import { lazily } from '../../../components/lazily'
import { Loaded, Loading } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { count } from '../../../format/numbers'
import { useTexts } from '../../../i18n/messages'
import { FlowTable } from './FlowTable'
import '../../../charts/charts.css'
import { messages } from './messages'

const Sankey = lazily(() => import('../../../charts/Sankey').then((module) => module.Sankey))
export type Flow = Answer<'/runs/{run_id}/routing'>

/** Read again when the run changed; `version` is what says so. */
const flowQuery = (runId: string, version: number | null) =>
  queryOptions({
    queryKey: ['routing', runId, version],
    queryFn: ({ signal }) => get('/runs/{run_id}/routing', { path: { run_id: runId }, signal, deadlineMs: 60_000 }),
    placeholderData: (previous) => previous,
  })

export type { Picked }

// A preview ends with the model that would answer: nothing was answered, graded or paid.
const PREVIEW_COLUMNS: readonly Column[] = ['category', 'decision', 'model']

interface Props {
  runId: string
  version: number | null
  preview?: boolean
  onPick?: (target: string | undefined, picked: Picked) => void
}

/** Where a run's questions went, or in a preview would go. `onPick` is told which target and which ends of a band were opened. */
export function RoutingFlow({ runId, version, preview = false, onPick }: Props) {
  const t = useTexts(messages)
  const flow = useQuery(flowQuery(runId, version))
  return (
    <Section title={t('title')} note={t(preview ? 'previewNote' : 'note')}>
      <Loaded query={flow} what={t('what')}>
        {(found) => <FlowView flow={found} preview={preview} onPick={onPick} />}
      </Loaded>
    </Section>
  )
}

function FlowView({ flow, preview, onPick }: { flow: Flow; preview: boolean; onPick?: ((target: string | undefined, picked: Picked) => void) | undefined }) {
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
        {!preview && (
          <SegmentedControl
            aria-label={t('measure')}
            value={measure}
            onChange={(value) => setMeasure(value as Measure)}
            data={[
              { value: 'questions', label: t('questions') },
              { value: 'dollars', label: t('dollars') },
            ]}
          />
        )}
      </div>
      {measure === 'dollars' && unknown > 0 && <p className="note">{t('unknownCosts', { n: count(unknown) ?? '' })}</p>}
      {measure === 'dollars' && !paid ? (
        <p className="note">{t('nothingPaid')}</p>
      ) : (
        <Suspense fallback={<Loading />}>
          <Sankey rows={rows} measure={measure} columns={preview ? PREVIEW_COLUMNS : undefined} onPick={onPick && ((picked) => onPick(target, picked))} />
        </Suspense>
      )}
      <FlowTable rows={rows} preview={preview} />
    </>
  )
}
