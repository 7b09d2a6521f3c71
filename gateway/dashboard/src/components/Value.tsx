import { Tooltip } from '@mantine/core'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { visible } from '../format/visible'
import { DASH } from '../format/numbers'

/** A figure, or a dash with the reason why it is unknown. An unknown figure is never shown as 0. */
export function Value({ children, why }: { children: string | null | undefined; why?: string | undefined }) {
  const t = useTexts(common)
  if (children !== null && children !== undefined) return <span className="figure">{visible(children)}</span>
  const reason = why ?? t('unknown')
  return (
    <Tooltip label={reason} events={{ hover: true, focus: true, touch: true }}>
      <span className="figure unknown" tabIndex={0} role="note" aria-label={reason}>
        {DASH}
      </span>
    </Tooltip>
  )
}
