import { isSha256, shelf, type Shelf, type Submission } from '../../submissions/shelf'

/** The start of a run. */
export interface RunSubmission extends Submission {
  manifest: Record<string, unknown>
}

/** Where the unsettled start of an account is kept. */
export function runShelf(actor: string): Shelf<RunSubmission> {
  return shelf(`sr-bench-submission:${actor}`, actor, ({ manifest }) => typeof manifest === 'object' && manifest !== null && isSha256(manifest.plan_sha256))
}
