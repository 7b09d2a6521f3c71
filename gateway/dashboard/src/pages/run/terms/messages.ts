import { defineMessages } from '../../../i18n/messages'

export const messages = defineMessages(
  {
    part: '{name} {right} of {planned}',
    macro: '{parts} → {value}',
    accuracy: '{right} ÷ {planned} = {value}, 95 % interval {low} to {high}',
    denominator: '{planned} planned = {answered} answered + {failed} failed + {pending} pending; {right} right',
    failures: '{ended} ended − {answered} answered = {failed}',
    neutral: '{neutral} against {observed} as observed',
    latency: 'p50 {low}, p95 {high}, of {n} answered',
    cacheRead: '{value}, over {n} {n|call|calls}',
  },
  {
    part: '{name} {planned} 中 {right}',
    macro: '{parts} → {value}',
    accuracy: '{right} ÷ {planned} = {value}，95% 区间 {low} 至 {high}',
    denominator: '计划 {planned} = 已回答 {answered} + 失败 {failed} + 待定 {pending}；正确 {right}',
    failures: '已结束 {ended} − 已回答 {answered} = {failed}',
    neutral: '{neutral}，实际为 {observed}',
    latency: 'p50 {low}，p95 {high}，共 {n} 个已回答',
    cacheRead: '{value}，基于 {n} 次调用',
  },
)
