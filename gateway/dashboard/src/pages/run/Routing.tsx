import { Link } from '@tanstack/react-router'
import type { Metrics } from '../../api/types'
import { Section } from '../../components/Page'
import { count, percent } from '../../format/numbers'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import type { QuestionsSearch } from './search'

/** Which models answered and which decisions routed, of whole reports; a click shows those questions. */
export function Routing({ targets, runId, preview, router }: { targets: Metrics[]; runId: string; preview: boolean; router: boolean }) {
  const t = useTexts(messages)
  // A single model routes nothing: its one bar would say what its name says.
  const routed = targets.filter((target) => preview || Object.keys(target.decisions).length > 0 || Object.keys(target.selected_models).length > 1)
  return (
    <Section title={t('routing')}>
      {routed.length === 0 && <p className="note">{t(router ? 'routingNone' : 'routingSingles')}</p>}
      {routed.map((target) => (
        <div key={target.id} className="stack-gap">
          <h3 className="wrap">{target.id}</h3>
          <p className="note">{t(preview ? 'previewNote' : 'routingNote', { n: count(asked(target)) ?? '' })}</p>
          <Bars title={preview ? t('selectedModels') : t('models')} counts={target.selected_models} of={asked(target)} to={(model) => ({ runId, search: { target: target.id, model } })} />
          <Bars title={t('decisions')} counts={target.decisions} of={asked(target)} to={(decision) => ({ runId, search: { target: target.id, decision } })} />
          {preview && <Selections target={target} />}
        </div>
      ))}
    </Section>
  )
}

/** How many requests, previews of one, or saved calls that stand in for one, the counts are of. */
function asked(target: Metrics): number {
  return Math.max(target.request_count, sum(target.selection_statuses), target.replayed_call_count ?? 0)
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, n) => all + n, 0)
}

/** How a preview's selections came about; and how many of them a preview cannot know. */
function Selections({ target }: { target: Metrics }) {
  const t = useTexts(messages)
  const { execution_required: live = 0 } = target.selection_statuses
  return (
    <>
      <Bars title={t('selectionStatuses')} counts={target.selection_statuses} of={asked(target)} />
      <Bars title={t('selectionReasons')} counts={target.selection_reasons} of={asked(target)} />
      {live > 0 && (
        <p className="note" role="note">
          {t('needsLive', { n: count(live) ?? '', all: count(asked(target)) ?? '' })}
        </p>
      )}
    </>
  )
}

interface BarsProps {
  title: string
  counts: Record<string, number>
  of: number
  /** The questions behind a bar. */
  to?: ((name: string) => { runId: string; search: QuestionsSearch }) | undefined
}

function Bars({ title, counts, of, to }: BarsProps) {
  const t = useTexts(messages)
  const rows = Object.entries(counts).sort(([, one], [, other]) => other - one)
  if (rows.length === 0) return null
  return (
    <div className="bars">
      <h4>{title}</h4>
      <ul>
        {rows.map(([name, n]) => (
          <li key={name}>
            <BarName name={name} to={to?.(name)} />
            <span className="bar-track" aria-hidden>
              <span className="bar-fill" style={{ width: `${of > 0 ? (100 * n) / of : 0}%` }} />
            </span>
            <span className="figure">{t('share', { count: count(n) ?? '', share: (of > 0 ? percent(n / of) : null) ?? '—' })}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}

function BarName({ name, to }: { name: string; to: { runId: string; search: QuestionsSearch } | undefined }) {
  if (!to) return <span className="bar-name">{name}</span>
  return (
    <Link to="/runs/$runId/questions" params={{ runId: to.runId }} search={to.search} className="bar-name">
      {name}
    </Link>
  )
}
