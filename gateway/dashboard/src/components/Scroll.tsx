import type { ReactNode } from 'react'

/** A part that scrolls sideways when it is wider than its place; the keyboard reaches it. */
export function Scroll({ label, className, children }: { label: string; className?: string; children: ReactNode }) {
  return (
    <div className={className ? `scroll ${className}` : 'scroll'} tabIndex={0} role="group" aria-label={label}>
      {children}
    </div>
  )
}
