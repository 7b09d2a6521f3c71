import { Badge } from '@mantine/core'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

const COLOR: Record<string, string> = { completed: 'teal', queued: 'blue', running: 'blue', sent: 'blue', cancelled: 'gray' }

/** A status by its word; the colour only repeats it. */
export function StatusPill({ status }: { status: string }) {
  const t = useTexts(common)
  const key = `status_${status}` as Parameters<typeof t>[0]
  const word = t(key)
  return (
    <Badge color={COLOR[status] ?? 'orange'} variant="light" className="status-pill" data-status={status}>
      {word === key ? status : word}
    </Badge>
  )
}

/** A target by model and kind. */
export function TargetChip({ model, kind }: { model: string; kind: string | null | undefined }) {
  const t = useTexts(common)
  return (
    <span className="chip" title={model}>
      <span className="chip-text">{model}</span>
      <span className="chip-kind">{kind === 'mom' ? t('kind_mom') : t('kind_single')}</span>
    </span>
  )
}
