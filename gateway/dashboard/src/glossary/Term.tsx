import { Tooltip } from '@mantine/core'
import { visible } from '../format/visible'
import { useTexts } from '../i18n/messages'
import { messages } from './messages'

export type TermName = 'macro' | 'accuracy' | 'denominator' | 'failures' | 'observed' | 'neutral' | 'latency' | 'ttft' | 'format' | 'cacheRead' | 'paired' | 'saving' | 'record'

/** Where a term stands among figures: the target and what the service says of it. */
export interface Figure {
  name: string
  text: string | null
}

interface Props {
  term: TermName
  figures?: readonly Figure[] | undefined
  /** Whether the figures are those of a comparison. */
  compared?: boolean
  children: string
}

/** More would cover the table that they stand in. */
const MOST_FIGURES = 8

/** A word of the field; pointed at or focused, it says what it means, how it is computed, and the figures on the page. */
export function Term({ term, figures = [], compared = false, children }: Props) {
  const t = useTexts(messages)
  const known = figures.filter((figure) => figure.text !== null).slice(0, MOST_FIGURES)
  const card = (
    <span className="term-card">
      <span>{t(`${term}_means`)}</span>
      <span className="term-formula">{t(`${term}_formula`)}</span>
      {known.length > 0 && (
        <span>
          {t(compared ? 'hereCompared' : 'here')}
          {known.map((figure) => (
            <span className="block" key={figure.name}>
              {visible(figure.name)}: {figure.text}
            </span>
          ))}
        </span>
      )}
    </span>
  )
  return (
    <Tooltip label={card} multiline maw={360} withArrow events={{ hover: true, focus: true, touch: true }}>
      <button type="button" className="term">
        {children}
      </button>
    </Tooltip>
  )
}
