import { Checkbox, SegmentedControl, Select } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Metrics } from '../../../api/types'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, percent, points, signed, usd } from '../../../format/numbers'
import { duration } from '../../../format/time'
import { useTexts, type Translate } from '../../../i18n/messages'
import { Interval } from '../Interval'
import { byLoss, difference, figureOf, linesOf, MEASURES, type Line, type Measure } from './matrix'
import { messages } from './messages'

/** Every benchmark on every target, one figure at a time; on request held against one of the targets. */
export function Benchmarks({ rows, runId }: { rows: Metrics[]; runId: string }) {
  const t = useTexts(messages)
  const [measure, setMeasure] = useState<Measure>('accuracy')
  const [reference, setReference] = useState<string | null>(null)
  const [worst, setWorst] = useState(false)
  const lines = linesOf(rows)
  const targets = [...new Set(lines.flatMap((line) => [...line.cells.keys()]))]
  const shown = reference !== null && worst ? byLoss(measure, lines, reference) : lines
  return (
    <Section title={t('title')} note={t(`note_${measure}`)}>
      <div className="filters">
        <SegmentedControl className="whole-row" aria-label={t('measure')} value={measure} onChange={(value) => setMeasure(value as Measure)} data={MEASURES.map((value) => ({ value, label: t(value) }))} />
        {targets.length > 1 && <Select label={t('against')} placeholder={t('nothing')} clearable data={targets} value={reference} onChange={setReference} />}
        {reference !== null && <Checkbox label={t('worst')} checked={worst} onChange={(event) => setWorst(event.currentTarget.checked)} />}
      </div>
      {reference !== null && <p className="note">{t('noteAgainst', { target: reference })}</p>}
      <Scroll label={t('title')}>
        <table className="table" aria-label={t('title')}>
          <thead>
            <tr>
              <th scope="col">{t('benchmark')}</th>
              {targets.map((target) => (
                <th key={target} scope="col">
                  {target}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => (
              <tr key={line.benchmark}>
                <th scope="row">{line.benchmark}</th>
                {targets.map((target) => (
                  <td key={target}>
                    <Cell line={line} target={target} measure={measure} runId={runId} />
                    {reference !== null && reference !== target && <Difference value={difference(measure, line, target, reference)} measure={measure} />}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  )
}

function Cell({ line, target, measure, runId }: { line: Line; target: string; measure: Measure; runId: string }) {
  const t = useTexts(messages)
  const row = line.cells.get(target)
  if (row === undefined) return <Value why={t('noAccuracy')}>{null}</Value>
  const figure = textOf(measure, row)
  if (figure === null) return <Value why={whyUnknown(t, measure, row)}>{null}</Value>
  return (
    <>
      <Link to="/runs/$runId/questions" params={{ runId }} search={{ benchmark: line.benchmark, target }} aria-label={t('open', { benchmark: line.benchmark, target, figure })} className="cell-link">
        {measure === 'accuracy' ? <Interval value={row.accuracy} ends={row.accuracy_ci95} /> : figure}
      </Link>
      {measure === 'accuracy' && (
        <span className="note block">
          {row.correct === null ? '' : `${count(row.correct)} / ${count(row.total)}`}
          {row.accuracy_ci95 && ` · ${percent(row.accuracy_ci95[0])} – ${percent(row.accuracy_ci95[1])}`}
        </span>
      )}
    </>
  )
}

/** A figure as it is shown; `null` when it is unknown. */
function textOf(measure: Measure, row: Metrics): string | null {
  const value = figureOf(measure, row)
  if (measure === 'accuracy') return percent(value)
  if (measure === 'cost') return usd(value)
  return measure === 'latency' ? duration(value) : `${count(row.failed)} / ${count(row.total)}`
}

function whyUnknown(t: Translate<typeof messages.en>, measure: Measure, row: Metrics): string {
  if (measure === 'cost') return t('costWhy', { known: usd(row.known_cost_usd) ?? '' })
  return t(measure === 'latency' ? 'noTime' : 'noAccuracy')
}

function Difference({ value, measure }: { value: number | null; measure: Measure }) {
  const better = value !== null && value !== 0 && value > 0 === (measure === 'accuracy')
  const tone = value === null || value === 0 ? 'soft' : better ? 'good' : 'bad'
  const shows = { accuracy: () => points(value), cost: () => signed(value, usd), latency: () => signed(value, duration), failures: () => signed(value, count) }
  return (
    <span className={`block figure ${tone}`}>
      <Value>{shows[measure]()}</Value>
    </span>
  )
}
