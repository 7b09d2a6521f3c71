import { Badge, Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { Run } from '../../api/types'
import { Section } from '../../components/Page'
import { Value } from '../../components/Value'
import { count, points, usd } from '../../format/numbers'
import { Term, type Figure } from '../../glossary/Term'
import { sentence, useTexts, type Translate } from '../../i18n/messages'
import { useSayings } from '../../i18n/sentences'
import { bandOf, NonInferiority } from './NonInferiority'
import { messages } from './messages'
import { keyOf, nameOf, runName } from './names'
import type { Comparison, ComparisonReport } from './queries'
import { pValue, range, savedPercent } from './savings'

const TONE: Record<string, { color: string; word: 'better' | 'worse' | 'open' }> = {
  better: { color: 'teal', word: 'better' },
  worse: { color: 'red', word: 'worse' },
}

type Translated = (sentence: string) => string

/** One card a comparison: the word, the sentence, the figures behind it. */
export function Verdicts({ report, runs, onQuestions }: { report: ComparisonReport; runs: Map<string, Run>; onQuestions: (row: Comparison) => void }) {
  const t = useTexts(messages)
  const translated = useSayings(report.sayings)
  const note = t('against', { name: report.baseline_selected_target_id, run: runName(runs, report.baseline_run_id), how: translated(report.baseline_selection_qualification) })
  const tied = report.baseline_tied_best_target_ids
  return (
    <Section title={t('verdicts')} note={tied.length > 1 ? `${note} ${t('ties', { list: tied.join(', ') })}` : note}>
      <ul className="verdicts">
        {report.comparisons.map((row) => (
          <Card key={keyOf(row)} row={row} name={nameOf(runs, report, row)} translated={translated} onQuestions={() => onQuestions(row)} />
        ))}
      </ul>
      {report.margin_qualification && <p className="note">{sentence(translated(report.margin_qualification))}</p>}
      <details className="fold">
        <summary>{t('rule')}</summary>
        <p className="note">{sentence(translated(report.verdict_rule))}</p>
        <p className="note">{translated(report.comparisons[0]?.quality_delta_adaptive_ci95_qualification ?? '')}</p>
        <p className="note">{translated(report.comparisons[0]?.quality_delta_ci95_qualification ?? '')}</p>
        <p className="note">{sentence(translated(report.baseline_tie_policy))}</p>
      </details>
    </Section>
  )
}

function Card({ row, name, translated, onQuestions }: { row: Comparison; name: string; translated: Translated; onQuestions: () => void }) {
  const t = useTexts(messages)
  const tone = TONE[row.verdict] ?? { color: 'gray', word: 'open' as const }
  return (
    <li className={`verdict ${tone.word}`} data-verdict={row.verdict}>
      <div className="verdict-head">
        <h3 className="wrap">{name}</h3>
        <Badge color={tone.color} variant="light" className="status-pill">
          {t(tone.word)}
        </Badge>
      </div>
      <p>{sentenceOf(row, t)}</p>
      {row.claims.map((claim) => (
        <NonInferiority key={claim.plan_run_id} row={row} found={claim} />
      ))}
      {row.non_inferiority && <NonInferiority row={row} found={row.non_inferiority} />}
      <dl className="verdict-figures">
        <div>
          <dt>
            <Term term="paired" compared figures={[{ name: row.candidate_target_id, text: points(row.quality_delta) }]}>
              {t('quality')}
            </Term>
          </dt>
          <dd>
            <span className="figure big">{points(row.quality_delta)}</span>
            <span className="note block">{t('qualityOf', { interval: range(row.quality_delta_adaptive_ci95, points) ?? t('noInterval') })}</span>
          </dd>
        </div>
        <div>
          <dt>
            <Term term="saving" compared figures={costsOf(row)}>
              {t('savingTotal')}
            </Term>
          </dt>
          <dd>
            <Saving row={row} translated={translated} />
          </dd>
        </div>
        <div>
          <dt>
            <Term term="record" compared figures={[{ name: 'McNemar', text: `p ${pValue(row.mcnemar_p)}` }, { name: 'Holm', text: `p ${pValue(row.mcnemar_p_holm)}` }]}>
              {t('record')}
            </Term>
          </dt>
          <dd>
            <span className="figure big">{[row.wins, row.losses, row.ties].map((n) => count(n)).join(' / ')}</span>
            <span className="note block">{t('pairs', { n: count(row.paired_cases) ?? '', p: pValue(row.mcnemar_p_holm) })}</span>
          </dd>
        </div>
      </dl>
      <div className="actions">
        <Button size="compact-sm" variant="default" onClick={onQuestions}>
          {t('showQuestions')}
        </Button>
        <Link to="/runs/$runId/results" params={{ runId: row.candidate_run_id }}>
          {t('toRun')}
        </Link>
      </div>
    </li>
  )
}

function costsOf(row: Comparison): Figure[] {
  return [
    { name: row.candidate_target_id, text: usd(row.candidate_total_cost_usd) },
    { name: row.baseline_target_id, text: usd(row.baseline_total_cost_usd) },
  ]
}

/** The verdict in words: the service's own sentence, or the same from its figures in another language. */
function sentenceOf(row: Comparison, t: Translate<typeof messages.en>): string {
  const names = { candidate: row.candidate_target_id, baseline: row.baseline_target_id }
  // Verdicts go by the simultaneous band, not by the interval of one comparison.
  const values = { ...names, delta: points(row.quality_delta) ?? '', interval: range(bandOf(row), points) ?? t('noInterval'), service: row.verdict_sentence }
  return t(row.verdict === 'better' ? 'sentenceBetter' : row.verdict === 'worse' ? 'sentenceWorse' : 'sentenceOpen', values)
}

/** What is saved; a range where costs are unknown; a dash with the reason where nothing can be said. */
function Saving({ row, translated }: { row: Comparison; translated: Translated }) {
  const t = useTexts(messages)
  const found = row.total_cost_saving
  const reason = row.total_cost_comparison_reason === null ? undefined : translated(row.total_cost_comparison_reason)
  return (
    <>
      <span className="big">
        <Value why={reason}>{savedPercent(row.total_cost_saving_percent)}</Value>
      </span>
      <span className="note block">
        {found === null
          ? reason
          : found.unknown_cost_calls > 0
            ? t('savingRange', { low: savedPercent(found.low_percent) ?? '', high: savedPercent(found.high_percent) ?? '', n: found.unknown_cost_calls })
            : t('savingInterval', { interval: range(found.ci95_percent, savedPercent) ?? t('noInterval') })}
      </span>
    </>
  )
}
