import type { Run } from '../../api/types'
import { Value } from '../../components/Value'
import { points, usd } from '../../format/numbers'
import { useTexts } from '../../i18n/messages'
import { useSayings } from '../../i18n/sentences'
import { messages } from './messages'
import { keyOf, nameOf } from './names'
import type { Comparison, ComparisonReport } from './queries'
import { pValue, range, savedPercent } from './savings'
import { Scroll } from '../../components/Scroll'

/** Every figure of every comparison, with the reason beside what is unknown. */
export function FigureTable({ report, runs }: { report: ComparisonReport; runs: Map<string, Run> }) {
  const t = useTexts(messages)
  const translated = useSayings(report.sayings)
  return (
    <details className="section fold">
      <summary>{t('table')}</summary>
      <Scroll label={t('table')}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{t('candidates')}</th>
              <th scope="col" className="num">{t('quality')}</th>
              <th scope="col" className="num">{t('micro')}</th>
              <th scope="col" className="num">{t('bootstrap')}</th>
              <th scope="col" className="num">{t('mcnemar')}</th>
              <th scope="col">{t('costs')}</th>
            </tr>
          </thead>
          <tbody>
            {report.comparisons.map((row) => (
              <tr key={keyOf(row)}>
                <th scope="row">
                  {nameOf(runs, report, row)}
                  <span className="soft block">
                    {row.candidate_target_id} / {row.baseline_target_id}
                  </span>
                </th>
                <td className="num">
                  {points(row.quality_delta)}
                  <span className="soft block">{range(row.quality_delta_adaptive_ci95, points)}</span>
                  <span className="soft block">Hoeffding {range(row.quality_delta_ci95, points)}</span>
                </td>
                <td className="num">{points(row.micro_quality_delta)}</td>
                <td className="num">
                  <Value>{range(row.quality_delta_bootstrap_ci95, points)}</Value>
                </td>
                <td className="num">
                  {pValue(row.mcnemar_p)}
                  <span className="soft block">Holm {pValue(row.mcnemar_p_holm)}</span>
                </td>
                <td>
                  <Costs row={row} translated={translated} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  )
}

function Costs({ row, translated }: { row: Comparison; translated: (sentence: string) => string }) {
  const t = useTexts(messages)
  const lines = [
    [t('subjectCost'), row.baseline_subject_cost_usd, row.candidate_subject_cost_usd, row.subject_cost_saving_percent, row.subject_cost_comparison_reason],
    [t('evaluationCost'), row.baseline_evaluation_cost_usd, row.candidate_evaluation_cost_usd, undefined, null],
    [t('totalCost'), row.baseline_total_cost_usd, row.candidate_total_cost_usd, row.total_cost_saving_percent, row.total_cost_comparison_reason],
    [t('neutralCost'), row.cache_neutral_baseline_cost_usd, row.cache_neutral_candidate_cost_usd, row.cache_neutral_cost_saving_percent, row.cache_neutral_cost_comparison_reason],
  ] as const
  const said = (reason: string | null) => (reason === null ? undefined : translated(reason))
  return (
    <ul className="plain-list costs">
      {lines.map(([name, baseline, candidate, saving, reason]) => (
        <li key={name}>
          <span className="soft">{name}</span> <Value why={said(reason)}>{usd(baseline)}</Value> → <Value why={said(reason)}>{usd(candidate)}</Value>
          {saving !== undefined && (
            <>
              {' · '}
              <Value why={said(reason)}>{savedPercent(saving)}</Value>
            </>
          )}
          {reason && <span className="note block">{said(reason)}</span>}
        </li>
      ))}
    </ul>
  )
}
