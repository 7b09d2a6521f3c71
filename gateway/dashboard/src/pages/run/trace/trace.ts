// What a router said of its choice, in headers of its answer. Its own words: shown as they came, sorted by what they are about.

export const STEPS = ['signals', 'decision', 'model', 'outcome', 'other'] as const
export type Step = (typeof STEPS)[number]

export interface Said {
  header: string
  /** Whether it came after the body. */
  trailer: boolean
  value: string
}

const STEP_OF: [RegExp, Step][] = [
  [/^x-vsr-(matched-|signal|selected-(category|modality|domain)|context-token)/, 'signals'],
  [/^x-vsr-selected-(decision|confidence|algorithm|recipe|reasoning|strategy)|^x-vsr-decision/, 'decision'],
  [/^x-vsr-(selected-model|candidate|forecast|fallback|overrid|looper-)/, 'model'],
  [/^x-vsr-(response-path|inference-call-count|cache-|model-usage|replay-id|fast-response|.*-(warning|blocked|detected))|-config-hash$/, 'outcome'],
]

/** The router's headers in a call's headers as text, a line each; by step, those of a step in the order in which they came. */
export function traceOf(headers: string): [Step, Said[]][] {
  const said = headers.split('\n').flatMap((line): Said[] => {
    const found = /^(trailer )?(x-(?:vsr|sr-bench)-[\w-]+): ?(.*)$/i.exec(line)
    return found ? [{ header: found[2]!.toLowerCase(), trailer: found[1] !== undefined, value: found[3]! }] : []
  })
  const steps = STEPS.map((step): [Step, Said[]] => [step, said.filter(({ header }) => stepOf(header) === step)])
  return steps.filter(([, rows]) => rows.length > 0)
}

function stepOf(header: string): Step {
  return STEP_OF.find(([pattern]) => pattern.test(header))?.[1] ?? 'other'
}
