import { count, decimal, points } from '../../format/numbers'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import type { Comparison } from './queries'
import { range } from './savings'

type Found = NonNullable<Comparison['non_inferiority']>

/** Whether a candidate loses at most a margin: the service's sentence, or the same from its figures in another language. */
export function NonInferiority({ row, found }: { row: Comparison; found: Found }) {
  const t = useTexts(messages)
  const values = {
    service: found.sentence,
    origin: found.exploratory ? t('niExploratory') : t('niClaimed', { run: found.plan_run_id ?? '' }),
    candidate: row.candidate_target_id,
    baseline: row.baseline_target_id,
    margin: `${decimal(100 * found.margin, 4) ?? ''} pp`,
    interval: range(bandOf(row), points) ?? t('noInterval'),
  }
  const word = found.verdict === 'supported' ? 'niSupported' : found.verdict === 'contradicted' ? 'niContradicted' : 'niNotShown'
  const more = found.more_cases === null ? t('niNever') : t(row.quality_delta > -found.margin ? 'niMoreFor' : 'niMoreAgainst', { n: count(rounded(found.more_cases)) ?? '' })
  return <p className={found.exploratory ? 'soft' : undefined}>{t(word, { ...values, more })}</p>
}

/** The interval that verdicts go by: that of the simultaneous band. */
export function bandOf(row: Comparison): readonly number[] | undefined {
  return row.band?.singles.find((single) => single.target_id === row.baseline_target_id)?.interval
}

/** Two leading digits, rounded up: a projection knows no more. */
function rounded(n: number): number {
  const unit = 10 ** Math.max(0, String(n).length - 2)
  return Math.ceil(n / unit) * unit
}
