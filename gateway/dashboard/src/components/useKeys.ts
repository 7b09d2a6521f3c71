import { useEffect } from 'react'

/** Runs what is bound to a key, unless somebody types. */
export function useKeys(bound: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const target = event.target
      if (target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))) return
      const run = bound[event.key]
      if (run) {
        event.preventDefault()
        run()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [bound])
}
