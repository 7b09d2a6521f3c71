import { Button, CopyButton as MantineCopy } from '@mantine/core'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

/** Copies `text`; its label says when it is done. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const t = useTexts(common)
  return (
    <MantineCopy value={text}>
      {({ copied, copy }) => (
        <Button size="compact-sm" variant="default" onClick={copy} aria-live="polite">
          {copied ? t('copied') : (label ?? t('copy'))}
        </Button>
      )}
    </MantineCopy>
  )
}
