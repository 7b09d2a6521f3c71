import { defineMessages } from '../../../i18n/messages'

export const messages = defineMessages(
  {
    title: 'How long answers took',
    note: 'Which share of the answers came within a time. Above and left is faster; marks are p50 and p95 of the report.',
    what: 'the times',
    answers: 'Whole answers',
    firstTokens: 'First token',
    none: 'No time is known yet.',
    target: 'Target',
    n: 'Known',
    tail: 'Slowest first: {target}',
    tailShort: 'Slowest first',
    list: 'Look at',
  },
  {
    title: '回答耗时',
    note: '在各时间内得到的回答占比。越靠左上越快；标记为报告中的 p50 和 p95。',
    what: '耗时',
    answers: '完整回答',
    firstTokens: '首 token',
    none: '尚无已知耗时。',
    target: '目标',
    n: '已知数量',
    tail: '最慢优先：{target}',
    tailShort: '最慢优先',
    list: '查看',
  },
)
