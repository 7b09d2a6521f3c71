import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef, type ReactNode } from 'react'

/** Links in a row, one of which is open. On a narrow screen the row scrolls, and the open one stays in sight. */
export function LinkRow({ label, className, children }: { label: string; className: string; children: ReactNode }) {
  const { pathname } = useLocation()
  const row = useRef<HTMLElement>(null)
  useEffect(() => {
    const open = row.current?.querySelector<HTMLElement>('[aria-current="page"]')
    if (row.current && open) row.current.scrollLeft = open.offsetLeft - row.current.offsetLeft - (row.current.clientWidth - open.clientWidth) / 2
  }, [pathname])
  return (
    <nav aria-label={label} className={className} ref={row}>
      {children}
    </nav>
  )
}
