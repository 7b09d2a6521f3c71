import { SegmentedControl } from '@mantine/core'
import { useTexts } from '../../i18n/messages'
import type { Form } from './form'
import { messages } from './messages'

/** Answers, or only the routers' choices. */
export function KindChoice({ value, disabled, onChange }: { value: Form['mode']; disabled: boolean; onChange: (mode: Form['mode']) => void }) {
  const t = useTexts(messages)
  return (
    <SegmentedControl
      aria-label={t('kind')}
      value={value}
      disabled={disabled}
      onChange={(mode) => onChange(mode as Form['mode'])}
      data={[
        { value: 'live', label: t('live') },
        { value: 'preview', label: t('preview') },
      ]}
    />
  )
}
