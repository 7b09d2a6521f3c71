import type { Spend } from '../api/types'
import { usd } from '../format/numbers'
import { defineMessages, useTexts } from '../i18n/messages'
import { Value } from './Value'

const messages = defineMessages(
  {
    of: '{spent} of {budget}',
    noBudget: '{spent}, no budget applies',
    atLeast: 'at least {spent}: the cost of {n} {n|call|calls} is unknown',
    noSpend: 'The accounting service has heard nothing of this run yet.',
    label: 'Spend against the budget',
  },
  {
    of: '{spent} / {budget}',
    noBudget: '{spent}（无预算限制）',
    atLeast: '至少 {spent}：有 {n} 次调用费用未知',
    noSpend: '记账服务尚未收到此运行的任何记录。',
    label: '花费与预算',
  },
)

/** Known spend against the budget. With calls of unknown cost it is a lower bound, and says so. */
export function SpendBar({ spend }: { spend: Spend | null | undefined }) {
  const t = useTexts(messages)
  if (!spend) return <Value why={t('noSpend')}>{null}</Value>
  const spent = usd(spend.known_cost_usd) ?? ''
  const budget = spend.max_cost_usd
  return (
    <div className="spend">
      <span className="figure">{budget === null ? t('noBudget', { spent }) : t('of', { spent, budget: usd(budget) ?? '' })}</span>
      {budget !== null && <meter aria-label={t('label')} min={0} max={budget} high={budget * 0.8} optimum={0} value={Math.min(budget, spend.known_cost_usd)} />}
      {spend.unknown_cost_count > 0 && <span className="note">{t('atLeast', { spent, n: spend.unknown_cost_count })}</span>}
    </div>
  )
}
