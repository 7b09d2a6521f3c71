import { isActive, type Run } from '../../api/types'

type Against = 'baselineActive' | 'baselineNotLive' | 'baselineNoSingle' | 'baselineRecovery'

/** Why nothing can be derived from a run; `null` when it can be a baseline. The service has the last word. */
export function againstBaseline(run: Run): Against | null {
  if (isActive(run.status)) return 'baselineActive'
  if (run.manifest.mode !== 'live') return 'baselineNotLive'
  if (run.parent_run_id) return 'baselineRecovery'
  return run.manifest.targets.some((target) => target.kind === 'single') ? null : 'baselineNoSingle'
}
