import { PlainText } from '../components/PlainText'
import { Tile, Tiles } from '../components/Page'
import { Scroll } from '../components/Scroll'
import { count } from '../format/numbers'
import { visible } from '../format/visible'
import { useTexts } from '../i18n/messages'
import { gradingOf, saysSomething, type Grading, type Ratio, type Step } from './grading'
import { messages } from './messages'

/** What a grader found beyond right or wrong: tests, steps, checks, a judge's reasons. Nothing when it left nothing. */
export function GradeView({ details }: { details: unknown }) {
  const t = useTexts(messages)
  const grading = gradingOf(details)
  if (!saysSomething(grading)) return null
  return (
    <section className="stack-gap" aria-label={t('grading')}>
      <h3>{t('grading')}</h3>
      <Ratios grading={grading} />
      <Facts grading={grading} />
      {grading.explanation && <PlainText label={t('explanation')}>{grading.explanation}</PlainText>}
      {grading.stepList.length > 0 && <StepTable steps={grading.stepList} />}
    </section>
  )
}

function Ratios({ grading }: { grading: Grading }) {
  const t = useTexts(messages)
  const parts: [string, Ratio | null][] = [
    [t('tests'), grading.tests],
    [t('steps'), grading.steps],
    [t('pairs'), grading.pairs],
    ...grading.checks.map(([name, found]): [string, Ratio] => [t(name as keyof typeof messages.en), found]),
  ]
  const known = parts.filter((part): part is [string, Ratio] => part[1] !== null)
  if (known.length === 0) return null
  return (
    <Tiles>
      {known.map(([label, { part, of }]) => (
        <Tile key={label} label={label}>
          {t('ratio', { part: count(part) ?? '', of: count(of) ?? '' })}
          <svg className="ratio" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect className="rest" width="100" height="6" />
            <rect className="part" width={(100 * part) / of} height="6" />
          </svg>
        </Tile>
      ))}
    </Tiles>
  )
}

function Facts({ grading }: { grading: Grading }) {
  const t = useTexts(messages)
  const facts: [string, string | null][] = [
    [t('verdict'), grading.verdict],
    [t('reason'), grading.reason],
    [t('failedTest'), grading.failedTest],
    [t('message'), grading.message],
  ]
  const known = facts.filter((fact): fact is [string, string] => fact[1] !== null)
  if (known.length === 0) return null
  return (
    <dl className="facts">
      {known.map(([label, text]) => (
        <div key={label} className="fact">
          <dt>{label}</dt>
          <dd className="plain" data-verbatim>
            {visible(text)}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function StepTable({ steps }: { steps: Step[] }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('steps')}>
      <table className="table" aria-label={t('steps')}>
        <thead>
          <tr>
            <th scope="col">{t('step')}</th>
            <th scope="col">{t('status')}</th>
            <th scope="col">{t('failedTest')}</th>
            <th scope="col">{t('message')}</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step, index) => (
            <tr key={index}>
              <th scope="row">{visible(step.step)}</th>
              <td>
                {step.status === 'passed' ? <span className="good">✓ {t('passed')}</span> : <span className="bad">✗ {t('notPassed', { status: visible(step.status) })}</span>}
              </td>
              <td>{visible(step.test ?? '')}</td>
              <td className="plain" data-verbatim>
                {visible(step.message)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
