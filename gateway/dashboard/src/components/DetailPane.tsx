import { CloseButton } from '@mantine/core'
import { useEffect, useRef, type ReactNode } from 'react'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

/** One thing in full beside its list: the list keeps its place. Escape closes it. */
export function DetailPane({ title, actions, onClose, children }: { title: string; actions?: ReactNode; onClose: () => void; children: ReactNode }) {
  const t = useTexts(common)
  const pane = useRef<HTMLElement>(null)
  useEffect(() => {
    pane.current?.focus({ preventScroll: true })
    pane.current?.scrollTo?.({ top: 0 })
  }, [title])
  useEffect(() => {
    const close = (event: globalThis.KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented) onClose()
    }
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [onClose])
  return (
    <aside className="detail section" ref={pane} tabIndex={-1} aria-label={title}>
      <div className="section-head">
        <h2 className="wrap">{title}</h2>
        <div className="actions">
          {actions}
          <CloseButton aria-label={t('close')} onClick={onClose} />
        </div>
      </div>
      {children}
    </aside>
  )
}
