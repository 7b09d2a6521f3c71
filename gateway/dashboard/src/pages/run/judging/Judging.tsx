import type { components } from '../../../api/schema'
import { Section } from '../../../components/Page'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, decimal, percent } from '../../../format/numbers'
import { moment } from '../../../format/time'
import { useTexts } from '../../../i18n/messages'
import { Interval } from '../Interval'
import { messages } from './messages'

type Judging = components['schemas']['Judging']
type Audited = components['schemas']['AuditedAccuracy']
type Headline = components['schemas']['AuditedHeadline']

/** How well the run's judges judge: accuracies corrected by people's labels, and the agreement of two judges. */
export function Judging({ judging }: { judging: Judging }) {
  const t = useTexts(messages)
  const sum = (part: 'audited_count' | 'graded_count') => judging.headlines.reduce((all, row) => all + row[part], 0)
  const audited = judging.audited.length > 0
  return (
    <Section title={t('title')} note={t('note')}>
      {audited && (
        <>
          <p>
            {t('by', { audited: count(sum('audited_count')) ?? '', graded: count(sum('graded_count')) ?? '', when: moment(judging.audit_at) ?? '—' })}{' '}
            <span className="soft">
              {t('auditor')} <span data-verbatim>{judging.auditor}</span>
            </span>
          </p>
          <Corrected judging={judging} />
          <details className="fold">
            <summary>{t('quality')}</summary>
            <p className="note">{t('qualityNote')}</p>
            <Quality rows={judging.audited} />
          </details>
        </>
      )}
      {judging.agreements.length > 0 && <Agreement judging={judging} />}
    </Section>
  )
}

interface Row {
  target: string
  scope: string
  judged: number | null
  corrected: number | null
  ends: number[] | null
  labels: string | null
  agreed: string | null
}

/** A target's rows over all benchmarks where it has several, then one for each judged one. */
function rowsOf(judging: Judging, whole: string, macro: string): Row[] {
  return judging.headlines.flatMap((headline) => {
    const own = judging.audited.filter((row) => row.target_id === headline.target_id)
    const single = own.length === 1 && own[0]?.planned_count === headline.planned_count
    const rows = own.map((row) => rowOf(row.benchmark, row.judged_accuracy, row))
    return single ? rows : [rowOf(whole, headline.accuracy, headline), macroOf(macro, headline), ...rows]
  })
}

function rowOf(scope: string, judged: number, row: Audited | Headline): Row {
  const labels = `${count(row.audited_count)} / ${count(row.graded_count)}`
  const agreed = row.audited_count === 0 ? null : `${count(row.agreed_count)} / ${count(row.audited_count)}`
  return { target: row.target_id, scope, judged, corrected: row.corrected_accuracy, ends: bounds(row.lower, row.upper), labels, agreed }
}

function macroOf(scope: string, row: Headline): Row {
  return { target: row.target_id, scope, judged: row.macro_accuracy, corrected: row.corrected_macro_accuracy, ends: bounds(row.macro_lower, row.macro_upper), labels: null, agreed: null }
}

function bounds(low: number | null, high: number | null): number[] | null {
  return low === null || high === null ? null : [low, high]
}

function Corrected({ judging }: { judging: Judging }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('corrected')}>
      <table className="table" aria-label={t('corrected')}>
        <thead>
          <tr>
            <th scope="col">{t('target')}</th>
            <th scope="col">{t('benchmark')}</th>
            <th scope="col" className="num">
              {t('judged')}
            </th>
            <th scope="col">{t('corrected')}</th>
            <th scope="col">{t('interval')}</th>
            <th scope="col" className="num">
              {t('labels')}
            </th>
            <th scope="col" className="num">
              {t('agreed')}
            </th>
          </tr>
        </thead>
        <tbody>
          {rowsOf(judging, t('whole'), t('macro')).map((row) => (
            <tr key={`${row.target} ${row.scope}`}>
              <th scope="row">{row.target}</th>
              <td>{row.scope}</td>
              <td className="num">
                <Value>{percent(row.judged)}</Value>
              </td>
              <td>{row.corrected === null ? <Value why={t('fewLabels')}>{null}</Value> : <Interval value={row.corrected} ends={row.ends} />}</td>
              <td className="figure">
                <Value why={t('fewLabels')}>{row.ends && `${percent(row.ends[0])} – ${percent(row.ends[1])}`}</Value>
              </td>
              <td className="num">
                <Value why={t('perBenchmark')}>{row.labels}</Value>
              </td>
              <td className="num">
                <Value why={row.labels === null ? t('perBenchmark') : t('noLabels')}>{row.agreed}</Value>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Quality({ rows }: { rows: Audited[] }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('quality')}>
      <table className="table" aria-label={t('quality')}>
        <thead>
          <tr>
            <th scope="col">{t('target')}</th>
            <th scope="col">{t('benchmark')}</th>
            <th scope="col" className="num">
              {t('sensitivity')}
            </th>
            <th scope="col" className="num">
              {t('specificity')}
            </th>
            <th scope="col" className="num">
              {t('roganGladen')}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.target_id} ${row.benchmark}`}>
              <th scope="row">{row.target_id}</th>
              <td>{row.benchmark}</td>
              <td className="num">
                <Value why={t('noneRight')}>{percent(row.sensitivity)}</Value>
              </td>
              <td className="num">
                <Value why={t('noneWrong')}>{percent(row.specificity)}</Value>
              </td>
              <td className="num">
                <Value why={t('noRoganGladen')}>{percent(row.rogan_gladen_accuracy)}</Value>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Agreement({ judging }: { judging: Judging }) {
  const t = useTexts(messages)
  return (
    <>
      <h3>{t('agreement')}</h3>
      <p className="note">{t('agreementNote')}</p>
      <Scroll label={t('agreement')}>
        <table className="table" aria-label={t('agreement')}>
          <thead>
            <tr>
              <th scope="col">{t('benchmark')}</th>
              <th scope="col" className="num">
                {t('pairs')}
              </th>
              <th scope="col" className="num">
                {t('unpaired')}
              </th>
              <th scope="col" className="num">
                {t('observed')}
              </th>
              <th scope="col" className="num">
                {t('kappa')}
              </th>
            </tr>
          </thead>
          <tbody>
            {judging.agreements.map((row) => (
              <tr key={row.benchmark}>
                <th scope="row">{row.benchmark}</th>
                <td className="num">{count(row.pair_count)}</td>
                <td className="num">{count(row.unpaired_count)}</td>
                <td className="num">
                  <Value why={t('noPairs')}>{percent(row.observed)}</Value>
                </td>
                <td className="num">
                  <Value why={t('noKappa')}>{decimal(row.kappa, 3)}</Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  )
}
