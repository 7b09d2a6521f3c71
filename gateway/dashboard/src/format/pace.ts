// How fast a run goes, from what was seen of it.

/** What was seen at one moment: seconds since 1970 and cells that had ended. */
export interface Sample {
  at: number
  done: number
}

/** How fast a run goes. */
export interface Pace {
  /** Cells a second. */
  rate: number
  /** Seconds to the end, from the slower and from the faster half of what was seen. */
  earliest: number
  latest: number
}

const KEPT_S = 120
const LEAST_S = 2

/** `samples` with another one; what is older than two minutes is forgotten. */
export function withSample(samples: readonly Sample[], next: Sample): Sample[] {
  const last = samples.at(-1)
  // A run that goes backwards is another run, or another service.
  if (last && next.done < last.done) return [next]
  if (last && next.at - last.at < 0.5) return [...samples]
  return [...samples.filter((sample) => next.at - sample.at <= KEPT_S), next]
}

/** The pace of a run with `total` cells; `null` while too little was seen, or nothing moves. */
export function paceOf(samples: readonly Sample[], total: number): Pace | null {
  const first = samples[0]
  const last = samples.at(-1)
  if (!first || !last || last.at - first.at < LEAST_S) return null
  const rate = (last.done - first.done) / (last.at - first.at)
  if (rate <= 0) return null
  const middle = samples[Math.floor(samples.length / 2)] ?? first
  const halves = [between(first, middle), between(middle, last)].filter((half) => half > 0)
  const left = total - last.done
  return { rate, earliest: left / Math.max(rate, ...halves), latest: left / Math.min(rate, ...halves) }
}

function between(from: Sample, to: Sample): number {
  return to.at > from.at ? (to.done - from.done) / (to.at - from.at) : 0
}
