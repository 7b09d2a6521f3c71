import { visible } from '../format/visible'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

const TONE: Record<string, Tone> = { completed: 'good', queued: 'active', running: 'active', sent: 'active', cancelled: 'quiet' }
type Tone = 'good' | 'active' | 'quiet' | 'warn'

/** A word in a frame. */
export function Pill({ tone, children, title }: { tone: Tone; children: string; title?: string }) {
  return (
    <span className="pill" data-tone={tone} title={title}>
      {children}
    </span>
  )
}

/** A status by its word; the colour only repeats it. */
export function StatusPill({ status }: { status: string }) {
  const t = useTexts(common)
  const key = `status_${status}` as Parameters<typeof t>[0]
  const word = t(key)
  return (
    <span data-status={status}>
      <Pill tone={TONE[status] ?? 'warn'}>{word === key ? status : word}</Pill>
    </span>
  )
}

/** A target by model and kind. */
export function TargetChip({ model, kind }: { model: string; kind: string | null | undefined }) {
  const t = useTexts(common)
  return (
    <span className="chip" title={model}>
      <span className="chip-text">{visible(model)}</span>
      <span className="chip-kind">{kind === 'mom' ? t('kind_mom') : t('kind_single')}</span>
    </span>
  )
}
