import { lazy, type ComponentType, type LazyExoticComponent } from 'react'

const TRIES = 20
const RETRY_MS = 3_000

/** A part that is loaded when it is first shown. A lost connection is waited out: what is missing is asked for again. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): LazyExoticComponent<ComponentType<P>> {
  return lazy(async () => {
    for (let left = TRIES; ; left -= 1) {
      try {
        return { default: await load() }
      } catch (error) {
        if (left <= 1) throw error
        await new Promise((done) => setTimeout(done, RETRY_MS))
      }
    }
  })
}
