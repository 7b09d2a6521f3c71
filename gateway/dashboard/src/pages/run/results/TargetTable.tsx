import type { ReactNode } from 'react'
import type { Metrics } from '../../../api/types'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, percent, usd } from '../../../format/numbers'
import { duration } from '../../../format/time'
import { Term, type TermName } from '../../../glossary/Term'
import { useTexts, type Translate } from '../../../i18n/messages'
import { Interval } from '../Interval'
import { messages } from '../messages'
import { figureOf } from '../terms/figures'
import { messages as termMessages } from '../terms/messages'

type Texts = Translate<typeof messages.en>

interface Column {
  title: string
  term?: TermName
  /** Not a number: it stands left. */
  drawn?: boolean
  cell: (row: Metrics) => ReactNode
}

/** The targets of a run side by side. A preview has no answers, so nothing of these. */
export function TargetTable({ rows, benchmarks, preview }: { rows: Metrics[]; benchmarks: Metrics[]; preview: boolean }) {
  const t = useTexts(messages)
  const terms = useTexts(termMessages)
  const said = (term: TermName) => rows.map((row) => ({ name: row.id, text: figureOf(term, row, benchmarks, terms) }))
  const columns = preview ? [planned(t), failures(t)] : [...quality(t), failures(t), ...costAndTime(t)]
  return (
    <Scroll label={t('comparison')}>
      <table className="table" aria-label={t('comparison')}>
        <thead>
          <tr>
            <th scope="col">{t('target')}</th>
            {columns.map(({ title, term, drawn }) => (
              <th key={title} scope="col" className={drawn ? undefined : 'num'}>
                {term ? (
                  <Term term={term} figures={said(term)}>
                    {title}
                  </Term>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">{row.id}</th>
              {columns.map(({ title, drawn, cell }) => (
                <td key={title} className={drawn ? undefined : 'num'}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function planned(t: Texts): Column {
  return { title: t('planned'), cell: (row) => count(row.total) }
}

function failures(t: Texts): Column {
  return { title: t('failures'), term: 'failures', cell: (row) => count(row.failed) }
}

function quality(t: Texts): Column[] {
  return [
    { title: t('macro'), term: 'macro', cell: (row) => <Value>{percent(row.macro_accuracy)}</Value> },
    { title: t('accuracy'), term: 'accuracy', drawn: true, cell: (row) => <Interval value={row.accuracy} ends={row.accuracy_ci95} /> },
    { title: t('correct'), term: 'denominator', cell: (row) => <Correct row={row} /> },
  ]
}

function Correct({ row }: { row: Metrics }) {
  const t = useTexts(messages)
  const ended = row.total - row.pending
  return (
    <>
      <Value>{row.correct === null ? null : `${count(row.correct)} / ${count(row.total)}`}</Value>
      {row.pending > 0 && row.correct !== null && ended > 0 && (
        <span className="note block">{t('sofar', { share: percent(row.correct / ended) ?? '', n: count(ended) ?? '' })}</span>
      )}
    </>
  )
}

function costAndTime(t: Texts): Column[] {
  const why = (row: Metrics) => t('costWhy', { known: usd(row.known_cost_usd) ?? '' })
  return [
    { title: t('observed'), term: 'observed', cell: (row) => <Value why={why(row)}>{usd(row.cost_usd)}</Value> },
    { title: t('neutral'), term: 'neutral', cell: (row) => <Value why={why(row)}>{usd(row.cache_neutral_cost_usd)}</Value> },
    {
      title: t('latency'),
      term: 'latency',
      cell: (row) => <Value why={t('timeNote')}>{pair(duration(row.latency_p50_s), duration(row.latency_p95_s))}</Value>,
    },
    { title: t('ttft'), term: 'ttft', cell: (row) => <Value why={t('timeNote')}>{duration(row.ttft_p50_s)}</Value> },
  ]
}

function pair(one: string | null, other: string | null): string | null {
  return one === null || other === null ? null : `${one} / ${other}`
}
