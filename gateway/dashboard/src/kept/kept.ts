// What a person keeps in this browser: small documents under a key of their own for each account, the same in all tabs.
import { useCallback, useSyncExternalStore } from 'react'

const LISTENERS = new Map<string, Set<() => void>>()

/** The key of one kind of thing that an account keeps. */
export function keptKey(kind: string, actor: string | null, of = ''): string {
  return ['sr-bench', kind, actor ?? '', of].join(':')
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Keeps `value`, or forgets what was kept when it is `null`. Says whether the browser did. */
export function keep(key: string, value: unknown): boolean {
  try {
    if (value === null) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(value))
  } catch {
    return false
  }
  LISTENERS.get(key)?.forEach((tell) => tell())
  return true
}

/** What is kept under `key`, as `reader` understands it: anything may stand there, written by an older page or by hand. */
export function parseKept<T>(text: string | null, reader: (raw: unknown) => T): T {
  if (text === null) return reader(undefined)
  try {
    return reader(JSON.parse(text))
  } catch {
    return reader(undefined)
  }
}

/** The text kept under `key`, now and whenever this or another tab changes it. */
export function useKept(key: string): string | null {
  const subscribe = useCallback(
    (tell: () => void) => {
      const listeners = LISTENERS.get(key) ?? new Set()
      LISTENERS.set(key, listeners.add(tell))
      const elsewhere = (event: StorageEvent) => (event.key === key || event.key === null) && tell()
      addEventListener('storage', elsewhere)
      return () => {
        listeners.delete(tell)
        removeEventListener('storage', elsewhere)
      }
    },
    [key],
  )
  return useSyncExternalStore(subscribe, () => read(key))
}
