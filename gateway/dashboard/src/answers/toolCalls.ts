export interface ToolCall {
  name: string | null
  /** What the tool was given: arguments as they were written, or all of the call where it has no such shape. */
  given: unknown
}

/** The tool calls in an answer; entries of a shape that nobody knows stay whole. */
export function toolCallsIn(value: unknown): ToolCall[] {
  if (value === null || value === undefined) return []
  return (Array.isArray(value) ? value : [value]).map((entry: unknown) => {
    const called = (entry as { function?: unknown } | null)?.function as { name?: unknown; arguments?: unknown } | undefined
    const name = typeof called?.name === 'string' ? called.name : null
    return { name, given: name !== null && called?.arguments !== undefined ? called.arguments : entry }
  })
}
