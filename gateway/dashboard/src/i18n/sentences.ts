// Sentences that the service says in English, in Chinese, by their codes; `{fact}` is a fact of the sentence.
import { useMemo } from 'react'
import type { components } from '../api/schema'
import { common } from './common'
import { fill, useLanguage, type Language } from './messages'

export type Saying = components['schemas']['Saying']

const ZH: Record<string, string> = {
  ACCURACY_DENOMINATOR: '所有计划单元；失败或没有回答的按不正确计算',
  ADAPTIVE_INTERVAL: '它与 Hoeffding 区间一样对任意题数都成立，假设也相同：题目相互独立，但不必同质。双方少有分歧时它较窄，并且只涵盖题目的抽取。',
  BASELINE_SELECTION: '基线运行中质量最高的单一模型',
  BASELINE_SELECTION_BIAS: '它是根据用于对比的同一批回答选出的，这略微有利于基线：差值对候选而言偏保守。',
  BASELINE_TIES: '质量相同的单一模型中，取已知总花费最低者，再按标识排序；若其中任一花费未知，则不给出节省',
  CACHE_NEUTRAL: '被测目标每次调用的全部提示 token（含缓存读写）按实际应答模型的未缓存输入价计，加上输出 token 按输出价计',
  CELLS_WITHOUT_CALL: '部分单元没有被模型接受的调用；缺少它们时，全部单元的费用与 token 合计为空。',
  CORRECTED: '运行后根据保存的流更正了用量和费用；原始记录仍然保留。',
  COSTS_AT_PRICES: '费用为 token 数乘以申报价格，既不是账单，也不是硬件成本。',
  COSTS_UNKNOWN: '部分调用的费用未知；依赖它们的合计为空，而空值不能证明节省。',
  COST_UNKNOWN_BASELINE: '基线的费用未知',
  COST_UNKNOWN_CANDIDATE: '候选的费用未知',
  COST_UNKNOWN_TIE: '某个最强单一模型的总花费未知，因此无法与它比较费用',
  COST_ZERO_BASELINE: '基线没有花费，对它取百分比没有意义',
  GPQA_PUBLIC: 'GPQA Diamond 是公开的，可能已被用于训练；其文本不得再次发布。',
  INTERVALS: 'Hoeffding 区间对任意题数都成立，因而较宽；自助法区间和 McNemar 检验较窄，只涵盖题目的抽取。跨零的区间不显示任何差异。',
  INTERVALS_COVER_CASES: '正确率区间只涵盖题目的抽取，不含模型的采样噪声和服务商的变化。',
  MARGIN_EXPLORATORY: '该容差随此次请求给出，此时回答已可查看，因此结果是探索性的；要支持结论的容差须在运行之前写入计划（claims）',
  MERGED: '这些数字合并了该运行及其 {count} 次恢复：每个单元以第一次有回答的尝试为准，所有尝试的花费都计入；多次尝试的单元有不止一次机会。',
  MIX_NO_POOL_COST: '没有任何单一模型的费用已知',
  MIX_ROUTER_COST_UNKNOWN: '路由器的费用未知',
  MIX_TOO_DEAR: '每个单一模型都比路由器贵',
  NEEDS_HOLDOUT: '若据这些题目调优路由器，需要用从未看过的其他题目来确认收益。',
  NOT_COMPLETED: '此运行的状态为{status}；没有回答的单元按不正确计算。',
  NULL_COSTS: '费用为被测目标自身调用的费用；费用未知的单一模型不参与混合',
  NULL_MODEL_ALONE: '假定路由器背后的模型与其单独作答时的回答相同',
  PREVIEW: '这是预览：显示路由器会选择哪个模型，没有生成或评判任何回答。',
  PRICED_ONLY: '只有已定价的模型参与；没有申报价格的模型不会出现。',
  QUALITY_DENOMINATOR: '所有计划题目；任何一方失败的题目都按不正确计算',
  QUALITY_METRIC: '各基准中答对的计划题目所占比例的加权平均',
  RECOVERY: '此运行重试了另一运行的部分单元，单独来看不代表全部题目的成绩。',
  REPLAY: '这是回放：按模拟路由拼合已保存的回答，没有为它生成任何内容。',
  RESERVATIONS: '预留金额是一次调用的费用上限；仍在预留中的金额并未花费。',
  RUNNER_UNKNOWN: '没有记录此运行由哪个程序和机器产生。',
  SCOPE: '这些数字仅适用于这些冻结的题目和参数，不代表模型的一般排名。',
  SUBSET: '题目是该基准配置的子集；数字不能与全集的数字相比。',
  UNPRICED: '此运行未限制预算，也不要求价格；其费用仅供参考。',
  UNPRICED_BASELINE: '基线运行未要求价格',
  UNPRICED_CANDIDATE: '候选运行未要求价格',
  VERDICT_RULE: '只有当质量差在同时置信带中的整个区间位于零的一侧时才判为优于或不如：采用方差自适应区间，误差水平为 0.05 除以单一模型数与候选数之积，以抵偿事后挑选最强单一模型；95% 区间、自助法和 McNemar 检验仅作提示',
}

/** The sentences of an answer in a language: those with a code in Chinese, a person's own words as they are. */
export function spoken(language: Language, sayings: readonly Saying[]): (sentence: string) => string {
  const codes = new Map(sayings.map((saying) => [saying.text, saying]))
  return (sentence) => {
    const found = language === 'zh' ? codes.get(sentence) : undefined
    const text = found && ZH[found.code]
    return text ? fill(text, facts(found.facts)) : sentence
  }
}

/** A status is told in the reader's words. */
function facts(found: Readonly<Record<string, string>>): Record<string, string> {
  const status = found['status']
  const word = status === undefined ? undefined : (common.zh as Record<string, string>)[`status_${status}`]
  return word === undefined ? { ...found } : { ...found, status: `“${word}”` }
}

/** Gives sentences of an answer in the reader's language. */
export function useSayings(sayings: readonly Saying[]): (sentence: string) => string {
  const { language } = useLanguage()
  return useMemo(() => spoken(language, sayings), [language, sayings])
}
