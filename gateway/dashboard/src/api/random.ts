// `crypto.randomUUID` exists on secure origins only, and the Dashboard may be served over plain HTTP inside a network.

/** 32 hex digits that nobody can guess. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
