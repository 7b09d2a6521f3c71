// Refusals, failures and reasons in the reader's language.
import { useCallback } from 'react'
import { ApiError, messageOf, type Trouble } from '../api/errors'
import { useLanguage } from './messages'
import { refusalInChinese } from './reasons'

const TROUBLE: Record<Exclude<Trouble, 'refused'>, string> = {
  unreachable: '无法连接服务。',
  timeout: '服务没有及时回答。',
  unreadable: '回答不是本服务的 JSON。',
}

/** Anything thrown, in Chinese: by its reason and facts; else what kind of failure it is, with its reason. */
export function problemInChinese(error: unknown): string {
  if (!(error instanceof ApiError)) return `此页面出错（${error instanceof Error ? error.name : typeof error}）。`
  if (error.trouble !== 'refused') return TROUBLE[error.trouble]
  const known = refusalInChinese(error.reason, error.facts)
  if (known !== null) return known
  const field = error.facts['field']
  const told = [error.reason || `HTTP ${error.status}`, ...(field ? [field] : [])].join('，')
  return error.status >= 500 ? `服务出错（${told}）。` : `服务拒绝了请求（${told}）。`
}

/** Gives the sentence to show for anything thrown. */
export function useProblem(): (error: unknown) => string {
  const { language } = useLanguage()
  return useCallback((error) => (language === 'zh' ? problemInChinese(error) : messageOf(error)), [language])
}

/** Gives what stands for a refusal: the service's sentence, or the same by its reason and facts. */
export function useRefusal(): (reason: string, message: string, facts?: Readonly<Record<string, string>>) => string {
  const { language } = useLanguage()
  return useCallback((reason, message, facts) => (language === 'zh' ? (refusalInChinese(reason, facts) ?? `原因代码 ${reason}`) : message), [language])
}
