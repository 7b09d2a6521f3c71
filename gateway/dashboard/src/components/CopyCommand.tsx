import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'
import { CopyButton } from './CopyButton'

/** The same as a command line. */
export function CopyCommand({ text }: { text: string }) {
  const t = useTexts(common)
  return <CopyButton text={text} label={t('copyCommand')} />
}
