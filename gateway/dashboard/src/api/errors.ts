import type { components } from './schema'

/** The body of every refusal, as the API document says it. */
export type ErrorBody = components['schemas']['Error']

export type Trouble =
  /** The service answered and refused. */
  | 'refused'
  /** No answer came: cut off, refused connection, offline. Whether a write arrived is unknown. */
  | 'unreachable'
  /** The deadline passed. Whether a write arrived is unknown. */
  | 'timeout'
  /** Something answered that is not this service's JSON. */
  | 'unreadable'

/** A request without a usable answer. */
export class ApiError extends Error {
  constructor(
    readonly trouble: Trouble,
    message: string,
    readonly status: number = 0,
    readonly body: Partial<ErrorBody> = {},
  ) {
    super(message)
    this.name = 'ApiError'
  }

  /** The stable reason that programs branch on; empty when the service did not give one. */
  get reason(): string {
    return this.body.reason ?? ''
  }

  get facts(): Readonly<Record<string, string>> {
    return (this.body.facts as Record<string, string> | undefined) ?? {}
  }
}

/** The message to show for anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
