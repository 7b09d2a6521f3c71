import { useEffect, useState } from 'react'
import { isActive, type Progress } from '../api/types'
import { paceOf, withSample, type Pace, type Sample } from '../format/pace'

const seen = new Map<string, Sample[]>()

/** The pace of a run, from what this tab saw of it. */
export function usePace(run: { id: string; status: string; progress: Progress | null }): Pace | null {
  const [pace, setPace] = useState<Pace | null>(null)
  const done = run.progress ? run.progress.completed + run.progress.failed : 0
  const total = run.progress?.total ?? 0
  useEffect(() => {
    if (!isActive(run.status)) {
      seen.delete(run.id)
      setPace(null)
      return
    }
    const samples = withSample(seen.get(run.id) ?? [], { at: Date.now() / 1000, done })
    seen.set(run.id, samples)
    setPace(paceOf(samples, total))
  }, [run.id, run.status, done, total])
  return pace
}
