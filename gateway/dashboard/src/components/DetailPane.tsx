import { Button, CloseButton } from '@mantine/core'
import { useEffect, useRef, type ReactNode } from 'react'
import { visible } from '../format/visible'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { CopyButton } from './CopyButton'

/** To the row before and after the open one. */
export interface Walk {
  next: () => void
  previous: () => void
}

interface Props {
  title: string
  walk?: Walk | undefined
  onClose: () => void
  children: ReactNode
}

/** One thing in full beside its list, which keeps its place: with a way to its neighbours and a link to it. Escape closes it. */
export function DetailPane({ title, walk, onClose, children }: Props) {
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
        <h2 className="wrap">{visible(title)}</h2>
        <div className="actions">
          {walk && (
            <>
              <Button size="compact-sm" variant="default" onClick={walk.previous}>
                {t('walkPrevious')}
              </Button>
              <Button size="compact-sm" variant="default" onClick={walk.next}>
                {t('walkNext')}
              </Button>
            </>
          )}
          <CopyButton text={location.href} label={t('copyLink')} />
          <CloseButton aria-label={t('close')} onClick={onClose} />
        </div>
      </div>
      {children}
    </aside>
  )
}
