import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

/** To a report as a page that stands alone: to be printed, or saved and passed on. */
export function PaperLink({ href }: { href: string }) {
  const t = useTexts(common)
  return (
    <a className="button-link small" href={href} target="_blank" rel="noopener" title={t('reportPageHelp')}>
      {t('reportPage')}
    </a>
  )
}
