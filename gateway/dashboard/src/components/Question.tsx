import type { DatasetCase } from '../api/types'
import { defineMessages, useTexts } from '../i18n/messages'
import { stringifyExact } from '../api/exactJson'
import { TaskView, taskIn } from './Grids'
import { PlainText, SHOWN_CHARS } from './PlainText'
import { directionOf, visible } from '../format/visible'

const messages = defineMessages(
  {
    choices: 'Choices',
    chosen: 'chosen',
    none: 'The source text is not available here.',
    message: '{role} message',
    raw: 'As the model gets it',
  },
  { choices: '选项', chosen: '所选', none: '此处没有原文。', message: '{role} 消息', raw: '模型所见原文' },
)

/** A question as a model gets it: choices as a list, grids drawn. Its answer is not known to this page. */
export function Question({ question, chosen }: { question: DatasetCase; chosen?: string | undefined }) {
  const t = useTexts(messages)
  const task = taskIn(question.input)
  const before = question.messages.slice(0, -1)
  const stem = question.choices.length > 0 ? stemOf(question) : question.question
  if (!question.question && question.messages.length === 0) return <p className="note">{t('none')}</p>
  return (
    <div className="question">
      {before.map((message, index) => (
        <details className="fold" key={index}>
          <summary>{t('message', { role: message.role })}</summary>
          <PlainText label={message.role}>{textOf(message.content)}</PlainText>
        </details>
      ))}
      {task ? <TaskView task={task} /> : <Stem text={stem} />}
      {question.choices.length > 0 && (
        <ol className="choices" aria-label={t('choices')}>
          {question.choices.map((choice, index) => {
            const letter = String.fromCharCode(65 + index)
            const isChosen = chosen === letter
            return (
              <li key={letter} data-chosen={isChosen || undefined}>
                <span className="choice-letter">{letter}</span>
                <span className="plain">{visible(choice)}</span>
                {isChosen && <span className="chip-kind">{t('chosen')}</span>}
              </li>
            )
          })}
        </ol>
      )}
      <details className="fold">
        <summary>{t('raw')}</summary>
        <PlainText label={t('raw')}>{question.question}</PlainText>
      </details>
    </div>
  )
}

/** The beginning of a long question; all of it stands below, as the model gets it. */
function Stem({ text }: { text: string }) {
  const shown = text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text
  return (
    <p className="plain stem" data-verbatim dir={directionOf(shown)}>
      {visible(shown)}
    </p>
  )
}

/** The question without the list of its choices, where the prompt repeats them line by line. */
function stemOf(question: DatasetCase): string {
  const first = question.choices[0]
  const at = first === undefined ? -1 : question.question.search(new RegExp(`^\\(?A[.)] ${escaped(first.slice(0, 40))}`, 'm'))
  return at > 0 ? question.question.slice(0, at).trimEnd() : question.question
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : stringifyExact(content, 2)
}
