// The one way to the service. Types come from its API document (`schema.d.ts`); nothing here knows a field by heart.
import { ApiError, type ErrorBody } from './errors'
import { parseExact, stringifyExact } from './exactJson'
import type { paths } from './schema'

const PREFIX = '/api/sr-bench/v1'
/** Covers the whole exchange, stalled bodies included. */
const DEADLINE_MS = 30_000
/** Freezing a large plan takes the planner longer. */
export const LONG_DEADLINE_MS = 130_000

type Method = 'get' | 'post' | 'put' | 'delete'
type Short<P> = P extends `${typeof PREFIX}${infer Rest}` ? Rest : never
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>
/** The paths, below the prefix, that take a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: [NonNullable<paths[P][M]>] extends [never] ? never : Short<P>
}[keyof paths]
type Full<S extends string> = `${typeof PREFIX}${S}` extends keyof paths ? `${typeof PREFIX}${S}` : never

type Success<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 200 | 201 | 202 ? (R[S] extends { content: { 'application/json': infer J } } ? J : never) : never }[keyof R]
  : never
/** What a path answers. */
export type Answer<S extends string, M extends Method = 'get'> = Success<Operation<Full<S>, M>>
type ParametersOf<O> = O extends { parameters: infer P } ? P : never
type PathParams<O> = ParametersOf<O> extends { path: infer P } ? P : undefined
type Query<O> = ParametersOf<O> extends { query?: infer Q } ? Q : undefined
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : undefined
/** What a path takes in its query. */
export type QueryOf<S extends string, M extends Method = 'get'> = NonNullable<Query<Operation<Full<S>, M>>>
/** What a path takes as its body. */
export type Body<S extends string, M extends Method = 'post'> = BodyOf<Operation<Full<S>, M>>

export interface Options<S extends string, M extends Method> {
  path?: PathParams<Operation<Full<S>, M>>
  query?: Query<Operation<Full<S>, M>>
  body?: BodyOf<Operation<Full<S>, M>>
  signal?: AbortSignal | undefined
  deadlineMs?: number
}

let csrfToken = ''
let onSignedOut: () => void = () => undefined

/** Sets what writes must carry to prove that they come from this page. */
export function setCsrfToken(token: string): void {
  csrfToken = token
}

/** Says what to do when the service no longer knows the session. */
export function setSignedOutHandler(handler: () => void): void {
  onSignedOut = handler
}

export function get<S extends PathOf<'get'> & string>(path: S, options: Options<S, 'get'> = {}): Promise<Answer<S, 'get'>> {
  return send('GET', path, options) as Promise<Answer<S, 'get'>>
}

export function post<S extends PathOf<'post'> & string>(path: S, options: Options<S, 'post'> = {}): Promise<Answer<S, 'post'>> {
  return send('POST', path, options) as Promise<Answer<S, 'post'>>
}

export function remove<S extends PathOf<'delete'> & string>(path: S, options: Options<S, 'delete'> = {}): Promise<Answer<S, 'delete'>> {
  return send('DELETE', path, options) as Promise<Answer<S, 'delete'>>
}

/** Asks for a file with an empty body. Throws `ApiError` as every request does. */
export async function postFile(path: string, deadlineMs = 600_000): Promise<Blob> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (csrfToken) headers['x-csrf-token'] = csrfToken
  let response: Response
  let file: Blob
  try {
    response = await fetch(PREFIX + path, { method: 'POST', headers, body: '{}', signal: AbortSignal.timeout(deadlineMs), credentials: 'same-origin', redirect: 'error' })
    file = await response.blob()
  } catch {
    throw new ApiError('unreachable', 'The service cannot be reached.')
  }
  if (!response.ok) read(response, await file.text())
  return file
}

/** A path whose answer is text. Throws `ApiError` as every request does. */
export function getText<S extends PathOf<'get'> & string>(path: S, options: Options<S, 'get'> = {}): Promise<string> {
  return send('GET', path, options, text) as Promise<string>
}

/** The address of a path with its parameters, for links and event sources. */
export function address(path: string, params: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(String(params[name])))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return PREFIX + filled + (text ? `?${text}` : '')
}

interface Plain {
  path?: unknown
  query?: unknown
  body?: unknown
  signal?: AbortSignal | undefined
  deadlineMs?: number
}

/** One request, made once: nothing is ever retried here, so a write is never sent twice. */
async function send(method: string, path: string, options: Plain, take = read): Promise<unknown> {
  const deadline = AbortSignal.timeout(options.deadlineMs ?? DEADLINE_MS)
  const signal = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline
  const headers: Record<string, string> = { accept: 'application/json' }
  if (method !== 'GET' && csrfToken) headers['x-csrf-token'] = csrfToken
  const init: RequestInit = { method, headers, signal, credentials: 'same-origin', redirect: 'error' }
  if (options.body !== undefined) {
    headers['content-type'] = 'application/json'
    init.body = stringifyExact(options.body)
  }
  let response: Response
  let body: string
  try {
    response = await fetch(address(path, options.path as never, options.query as never), init)
    body = await response.text()
  } catch (error) {
    if (options.signal?.aborted) throw error
    if (deadline.aborted) throw new ApiError('timeout', 'The service did not answer in time.')
    throw new ApiError('unreachable', 'The service cannot be reached.')
  }
  return take(response, body)
}

function text(response: Response, body: string): unknown {
  return response.ok ? body : read(response, body)
}

function read(response: Response, text: string): unknown {
  let body: unknown
  try {
    body = text === '' ? null : parseExact(text)
  } catch {
    throw new ApiError('unreadable', `The answer is not JSON (HTTP ${response.status}).`, response.status)
  }
  // Everything that this service says is an object.
  if (response.ok && typeof body === 'object' && body !== null && !Array.isArray(body)) return body
  if (response.ok) throw new ApiError('unreadable', `The answer is not this service's (HTTP ${response.status}).`, response.status)
  const refusal = (body ?? {}) as Partial<ErrorBody>
  const sentence = typeof refusal.error === 'string' ? refusal.error : `The request failed with HTTP ${response.status}.`
  if (response.status === 401) onSignedOut()
  throw new ApiError('refused', sentence, response.status, refusal)
}
