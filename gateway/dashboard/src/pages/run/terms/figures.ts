import type { Metrics } from '../../../api/types'
import { count, percent, usd } from '../../../format/numbers'
import { duration } from '../../../format/time'
import type { TermName } from '../../../glossary/Term'
import type { Translate } from '../../../i18n/messages'
import type { messages } from './messages'

/** A term with a target's own figures, all of them the report's; `null` where one is unknown. `benchmarks` are the report's rows. */
export function figureOf(term: TermName, row: Metrics, benchmarks: readonly Metrics[], t: Translate<typeof messages.en>): string | null {
  const [right, planned, answered, failed] = [row.correct, row.total, row.completed, row.failed].map((value) => count(value))
  switch (term) {
    case 'macro': {
      const parts = benchmarks.filter((found) => found.target_id === row.id).map((found) => t('part', { name: found.benchmark ?? '', right: count(found.correct) ?? '—', planned: count(found.total) ?? '' }))
      return row.macro_accuracy === null ? null : t('macro', { parts: parts.join(', '), value: percent(row.macro_accuracy) ?? '' })
    }
    case 'accuracy': {
      const [low, high] = (row.accuracy_ci95 ?? []).map((end) => percent(end))
      return right && low && high ? t('accuracy', { right, planned: planned ?? '', value: percent(row.accuracy) ?? '', low, high }) : null
    }
    case 'denominator':
      return right ? t('denominator', { planned: planned ?? '', answered: answered ?? '', failed: failed ?? '', pending: count(row.pending) ?? '', right }) : null
    case 'failures':
      return t('failures', { ended: count(row.total - row.pending) ?? '', answered: answered ?? '', failed: failed ?? '' })
    case 'observed':
      return usd(row.cost_usd)
    case 'neutral': {
      const [neutral, observed] = [usd(row.cache_neutral_cost_usd), usd(row.cost_usd)]
      return neutral && observed ? t('neutral', { neutral, observed }) : null
    }
    case 'latency': {
      const [low, high] = [duration(row.latency_p50_s), duration(row.latency_p95_s)]
      return low && high ? t('latency', { low, high, n: answered ?? '' }) : null
    }
    case 'ttft':
      return duration(row.ttft_p50_s)
    case 'cacheRead': {
      const value = percent(row.cache_read?.cache_read_rate)
      return value ? t('cacheRead', { value, n: count(row.cache_read?.reported_calls) ?? '' }) : null
    }
    default:
      return null
  }
}
