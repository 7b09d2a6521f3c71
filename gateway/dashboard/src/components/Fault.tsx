import { visible } from '../format/visible'
import { common } from '../i18n/common'
import { useLanguage, useTexts } from '../i18n/messages'
import { useEnd } from '../i18n/ends'

/** What went wrong, in the words of whoever said it; in another language by its reason, with these words folded below. */
export function Fault({ reason, text }: { reason: string | null; text: string | null }) {
  const t = useTexts(common)
  const { language } = useLanguage()
  const end = useEnd()
  if (!text) return null
  if (language === 'en') return <p className="plain bad">{visible(text)}</p>
  return (
    <div className="bad">
      <p>{reason ? end(reason) : t('status_failed')}</p>
      <details>
        <summary>{t('original')}</summary>
        <p className="plain" lang="en" data-verbatim>
          {visible(text)}
        </p>
      </details>
    </div>
  )
}
