import { defineMessages } from '../../../i18n/messages'

export const messages = defineMessages(
  {
    title: 'Tokens and spend',
    note: 'What each target took in and gave out, and what that and its evaluation cost. Tokens are counted once: read from a cache, written to one, or fresh.',
    target: 'Target',
    calls: 'Calls',
    fresh: 'Fresh input',
    cached: 'Cached input',
    write: 'Cache write',
    output: 'Output',
    own: 'Own calls',
    evaluation: 'Judges and simulators',
    total: 'Total spend',
    tokensWhy: 'At least one call does not say it, or has not been made.',
    costWhy: 'The cost of at least one call, or its coverage, is unknown. Known: {known}.',
  },
  {
    title: 'Token 与花费',
    note: '每个目标的输入与输出，以及它本身和评判的费用。每个 token 只计一次：读自缓存、写入缓存或未缓存。',
    target: '目标',
    calls: '调用次数',
    fresh: '未缓存输入',
    cached: '缓存输入',
    write: '缓存写入',
    output: '输出',
    own: '自身调用',
    evaluation: '评判与模拟',
    total: '总花费',
    tokensWhy: '至少有一次调用未说明，或尚未进行。',
    costWhy: '至少有一次调用的费用或覆盖情况未知。已知部分：{known}。',
  },
)
