import { Value } from '../../components/Value'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import type { PairSide } from './queries'

/** Right, not right, or why there is no answer: in words, with a mark. */
export function SideMark({ side }: { side: PairSide | null }) {
  const t = useTexts(messages)
  if (side === null) return <Value>{null}</Value>
  if (side.correct === true) return <span className="good">✓ {t('right')}</span>
  if (side.status !== null && side.status !== 'completed') return <span className="bad">✗ {t('noAnswer', { reason: side.reason ?? side.status })}</span>
  return <span className="bad">✗ {t('wrong')}</span>
}
