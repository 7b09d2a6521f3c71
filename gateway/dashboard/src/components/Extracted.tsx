import { stringifyExact } from '../api/exactJson'
import { defineMessages, useTexts } from '../i18n/messages'
import { gridsIn, GridView } from './Grids'
import { PlainText } from './PlainText'

const messages = defineMessages({ extracted: 'Extracted answer', nothing: 'Nothing could be extracted from the answer.' }, { extracted: '提取的答案', nothing: '无法从回答中提取答案。' })

/** The answer that was read out of what a model said: grids drawn as grids, all else as text. */
export function Extracted({ answer }: { answer: unknown }) {
  const t = useTexts(messages)
  const grids = gridsIn(answer)
  if (grids) {
    return (
      <div className="grid-pair">
        {grids.map((grid, index) => (
          <GridView key={index} grid={grid} title={`${t('extracted')} ${index + 1}`} />
        ))}
      </div>
    )
  }
  if (answer === null || answer === undefined || answer === '') return <p className="note">{t('nothing')}</p>
  return <PlainText label={t('extracted')}>{typeof answer === 'string' ? answer : stringifyExact(answer, 2)}</PlainText>
}
