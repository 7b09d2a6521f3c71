import { diffLines, diffWordsWithSpace, type Change } from 'diff'
import { useMemo } from 'react'
import { directionOf, visible } from '../../format/visible'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** The work grows with the product of the lengths; beyond this a browser would stand still. */
const MOST_CHARS = 60_000
const MOST_EDITS = 4_000

/** What one text has and the other has not, as text. */
export function AnswerDiff({ before, after, by }: { before: string; after: string; by: 'words' | 'lines' }) {
  const t = useTexts(messages)
  const parts = useMemo(() => changes(visible(before), visible(after), by), [before, after, by])
  if (before === after) return <p className="note">{t('sameAnswers')}</p>
  if (parts === null) return <p className="note">{t('tooLong')}</p>
  return (
    <figure className="text-block" aria-label={t('difference')}>
      <pre className="plain diff" tabIndex={0} dir={directionOf(before + after)}>
        {parts.map((part, index) => (
          <Part key={index} part={part} />
        ))}
      </pre>
      <figcaption className="legend">
        <span>
          <del>−</del> {t('removed')}
        </span>
        <span>
          <ins>+</ins> {t('added')}
        </span>
      </figcaption>
    </figure>
  )
}

function Part({ part }: { part: Change }) {
  if (part.removed) return <del>{part.value}</del>
  if (part.added) return <ins>{part.value}</ins>
  return <span>{part.value}</span>
}

function changes(before: string, after: string, by: 'words' | 'lines'): Change[] | null {
  if (before.length + after.length > MOST_CHARS) return null
  const options = { maxEditLength: MOST_EDITS }
  return (by === 'words' ? diffWordsWithSpace(before, after, options) : diffLines(before, after, options)) ?? null
}
