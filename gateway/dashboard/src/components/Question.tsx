import type { DatasetCase } from '../api/types'
import { defineMessages, useTexts } from '../i18n/messages'
import { stringifyExact } from '../api/exactJson'
import { TaskView, taskIn } from './Grids'
import { PlainText, SHOWN_CHARS } from './PlainText'
import { directionOf, visible } from '../format/visible'

const messages = defineMessages(
  {
    choices: 'Choices',
    right: '{name}: right',
    wrong: '{name}: not right',
    ungraded: '{name}: no grade',
    noChoice: '{name} gave none of these.',
    none: 'The source text is not available here.',
    message: '{role} message',
    raw: 'As the model gets it',
  },
  { choices: '选项', right: '{name}：正确', wrong: '{name}：不正确', ungraded: '{name}：未评分', noChoice: '{name} 未给出其中任何一项。', none: '此处没有原文。', message: '{role} 消息', raw: '模型所见原文' },
)

/** Who answered with which letter, and whether that was right. */
export interface Pick {
  name: string
  answer: unknown
  correct: boolean | null
}

/** A question as a model gets it: choices as a list with who chose what, grids drawn. Its answer is not known to this page. */
export function Question({ question, picks = [] }: { question: DatasetCase; picks?: readonly Pick[] }) {
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
      {question.choices.length > 0 && <Choices choices={question.choices} picks={picks} />}
      <details className="fold">
        <summary>{t('raw')}</summary>
        <PlainText label={t('raw')}>{question.question}</PlainText>
      </details>
    </div>
  )
}

function Choices({ choices, picks }: { choices: readonly string[]; picks: readonly Pick[] }) {
  const t = useTexts(messages)
  const letters = choices.map((_choice, index) => String.fromCharCode(65 + index))
  const [own] = picks
  const elsewhere = picks.filter((pick) => !letters.includes(String(pick.answer)))
  return (
    <>
      <ol className="choices" aria-label={t('choices')}>
        {choices.map((choice, index) => (
          <li key={letters[index]} data-chosen={own?.answer === letters[index] || undefined}>
            <span className="choice-letter">{letters[index]}</span>
            <span className="plain min0">{visible(choice)}</span>
            <span className="chips">
              {picks.filter((pick) => pick.answer === letters[index]).map((pick) => <PickChip key={pick.name} pick={pick} />)}
            </span>
          </li>
        ))}
      </ol>
      {elsewhere.map((pick) => (
        <p className="note" key={pick.name}>
          {t('noChoice', { name: visible(pick.name) })}
        </p>
      ))}
    </>
  )
}

function PickChip({ pick }: { pick: Pick }) {
  const t = useTexts(messages)
  const name = visible(pick.name)
  const [mark, says] = pick.correct === null ? ['', t('ungraded', { name })] : pick.correct ? ['✓ ', t('right', { name })] : ['✗ ', t('wrong', { name })]
  return (
    <span className="chip" role="img" aria-label={says} title={says}>
      <span className={`chip-kind ${pick.correct === null ? 'soft' : pick.correct ? 'good' : 'bad'}`}>{mark}</span>
      <span className="chip-text">{name}</span>
    </span>
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
