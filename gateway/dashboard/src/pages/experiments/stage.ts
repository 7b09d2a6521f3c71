// Where an experiment stands, from the runs that belong to it. Pure.
import { isActive } from '../../api/types'
import type { Member } from './queries'

export type Stage =
  /** A run has not ended. */
  | 'active'
  /** Nothing to be held against yet. */
  | 'baseline'
  /** Nothing was held against the reference yet. */
  | 'initial'
  /** One recipe was; another can be tried. */
  | 'candidate'
  /** Several were: they can be reviewed, and the best confirmed on the holdout. */
  | 'review'

const MAIN = ['baseline', 'initial', 'candidate', 'validation'] as const
export type MainRole = (typeof MAIN)[number]
export const GROUPS = MAIN

/** The members of each main role, oldest first, and all others. */
export function grouped(members: readonly Member[]): { main: Record<MainRole, Member[]>; rest: Member[] } {
  const oldest = [...members].reverse()
  const main = Object.fromEntries(MAIN.map((role) => [role, oldest.filter((member) => member.role === role)])) as Record<MainRole, Member[]>
  return { main, rest: oldest.filter((member) => !(MAIN as readonly string[]).includes(member.role)) }
}

/** What an experiment waits for. */
export function stageOf(members: readonly Member[]): Stage {
  if (members.some(({ run }) => isActive(run.status))) return 'active'
  const { main } = grouped(members)
  if (main.baseline.length === 0) return 'baseline'
  if (main.initial.length === 0 && main.candidate.length === 0) return 'initial'
  return main.initial.length + main.candidate.length < 2 ? 'candidate' : 'review'
}

/** The reference to derive from: the last one. */
export function referenceOf(members: readonly Member[]): Member | undefined {
  return grouped(members).main.baseline.at(-1)
}
