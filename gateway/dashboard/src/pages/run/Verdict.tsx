import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** Right, not right, or without a grade: in words, with a mark. A cell without an answer counts as not right. */
export function Verdict({ correct, status }: { correct: boolean | null; status: string }) {
  const t = useTexts(messages)
  if (correct === true) return <span className="good">✓ {t('right')}</span>
  if (correct === false || status !== 'completed') return <span className="bad">✗ {t('wrong')}</span>
  return <span className="soft">{t('ungraded')}</span>
}
