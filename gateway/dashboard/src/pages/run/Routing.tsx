import { Link } from '@tanstack/react-router'
import type { Metrics } from '../../api/types'
import { Section } from '../../components/Page'
import { count, percent } from '../../format/numbers'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** Which models answered and which decisions routed, of whole reports; a click shows those questions. */
export function Routing({ targets, runId }: { targets: Metrics[]; runId: string }) {
  const t = useTexts(messages)
  // A single model routes nothing: its one bar would say what its name says.
  const routed = targets.filter((target) => Object.keys(target.decisions).length > 0 || Object.keys(target.selected_models).length > 1)
  return (
    <Section title={t('routing')}>
      {routed.length === 0 && <p className="note">{t('routingNone')}</p>}
      {routed.map((target) => (
        <div key={target.id} className="stack-gap">
          <h3 className="wrap">{target.id}</h3>
          <p className="note">{t('routingNote', { n: count(target.request_count) ?? '' })}</p>
          <Bars title={t('models')} counts={target.selected_models} of={target.request_count} runId={runId} target={target.id} kind="model" />
          <Bars title={t('decisions')} counts={target.decisions} of={target.request_count} runId={runId} target={target.id} kind="decision" />
        </div>
      ))}
    </Section>
  )
}

interface BarsProps {
  title: string
  counts: Record<string, number>
  of: number
  runId: string
  target: string
  kind: 'model' | 'decision'
}

function Bars({ title, counts, of, runId, target, kind }: BarsProps) {
  const t = useTexts(messages)
  const rows = Object.entries(counts).sort(([, one], [, other]) => other - one)
  if (rows.length === 0) return null
  return (
    <div className="bars">
      <h4>{title}</h4>
      <ul>
        {rows.map(([name, n]) => (
          <li key={name}>
            <Link to="/runs/$runId/questions" params={{ runId }} search={{ target, [kind]: name }} className="bar-name">
              {name}
            </Link>
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
