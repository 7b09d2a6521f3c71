// From a form to a frozen plan: prepare what is missing, join the datasets, ask the planner. No step asks a model.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, LONG_DEADLINE_MS, post } from '../../api/client'
import type { CheckedPlan, Dataset, DatasetSelection, Preparation, Target } from '../../api/types'
import { isWorking } from '../datasets/PreparePanel'
import { estimateOf, lastFigures, type Estimate } from './estimate'
import { fingerprint, manifestOf, type Form } from './form'

const POLL_MS = 1_500

/** A frozen plan and what it was made from. */
export interface Reviewed {
  plan: CheckedPlan
  mode: Form['mode']
  /** US dollars; `null` when none applies. */
  budget: number | null
  /** Whether the questions are a holdout; `null` when that is not known here. */
  holdout: boolean | null
  estimate: Estimate
  targetCount: number
  /** What it was made from; with another content it holds no longer. */
  mark: string
}

export function useReview() {
  const queries = useQueryClient()
  const [job, setJob] = useState<Preparation | null>(null)
  const review = useMutation({
    mutationFn: async ({ form, targets, datasets }: { form: Form; targets: Target[]; datasets: Dataset[] }): Promise<Reviewed> => {
      setJob(null)
      const dataset = form.dataset ? chosen(datasets, form.dataset) : await resolved(form, setJob)
      const manifest = manifestOf(form, targets, dataset)
      const plan = await post('/plans', { body: { manifest }, deadlineMs: LONG_DEADLINE_MS })
      const { concurrency, max_run_seconds: deadline, max_cost_usd: budget } = form.limits
      return {
        plan,
        mode: form.mode,
        budget: form.costPolicy === 'require_priced' ? budget : null,
        holdout: dataset.split === 'holdout',
        estimate: await estimated(form.mode, form.targets, plan, concurrency ?? 1, deadline ?? Infinity),
        targetCount: form.targets.length,
        mark: fingerprint(form),
      }
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ['datasets'] })
      void queries.invalidateQueries({ queryKey: ['selection'] })
      void queries.invalidateQueries({ queryKey: ['preparations'] })
    },
  })
  return { review, job }
}

/** What the last runs of the targets say of a plan; nothing for a preview, which costs nothing. */
export async function estimated(mode: Form['mode'], targetIds: readonly string[], plan: CheckedPlan, concurrency: number, deadlineS: number): Promise<Estimate> {
  if (mode !== 'live') return { costUsd: null, earliestS: null, latestS: null }
  // Cells by benchmark; every target answers each question.
  const cases = Object.fromEntries(Object.entries(plan.case_counts).map(([name, cells]) => [name, cells / targetIds.length]))
  // An estimate is a help: a plan is as good without one.
  const figures = await lastFigures(targetIds, Object.keys(cases)).catch(() => [])
  return estimateOf(figures, cases, concurrency, deadlineS)
}

function chosen(datasets: readonly Dataset[], id: string): Dataset {
  const found = datasets.find((dataset) => dataset.id === id)
  if (!found) throw new Error(`dataset ${id} is gone`)
  return found
}

/** The dataset of exactly the wanted benchmarks; what is not prepared yet is prepared first, in the background. */
async function resolved(form: Form, onJob: (job: Preparation) => void): Promise<Dataset> {
  let selection = await select(form)
  const missing = form.benchmarks.filter((id) => !selection.benchmarks.find((item) => item.id === id)?.eligible)
  if (missing.length > 0) {
    let { preparation } = await post('/dataset-preparations', { body: { benchmarks: missing, profile: form.profile } })
    onJob(preparation)
    while (isWorking(preparation)) {
      await new Promise((done) => setTimeout(done, POLL_MS))
      // A poll that failed says nothing of the work: the next one asks again.
      const read = await get('/dataset-preparations/{preparation_id}', { path: { preparation_id: preparation.id } }).catch(() => null)
      if (read) onJob((preparation = read.preparation))
    }
    if (preparation.status !== 'completed') throw new Error(preparation.error ?? preparation.reason ?? preparation.status)
    selection = await select(form)
  }
  const { dataset } = await post('/datasets/compose', { body: { dataset_ids: sources(selection, form.benchmarks), benchmarks: form.benchmarks }, deadlineMs: LONG_DEADLINE_MS })
  return dataset
}

function select(form: Form): Promise<DatasetSelection> {
  return get('/datasets/selection', { query: { profile: form.profile } })
}

/** One dataset that holds all of them where there is one, else one for each benchmark. */
export function sources(selection: DatasetSelection, benchmarks: readonly string[]): string[] {
  const byBenchmark = benchmarks.map((id) => selection.benchmarks.find((item) => item.id === id)?.source_ids ?? [])
  const shared = byBenchmark[0]?.find((source) => byBenchmark.every((found) => found.includes(source)))
  if (shared) return [shared]
  return [...new Set(byBenchmark.map((found) => found[0]).filter((id): id is string => id !== undefined))]
}
