import { compact, text, texts } from '../../app/search'

/** The runs that are compared. */
export interface CompareSearch {
  baseline?: string | undefined
  candidate?: string[] | undefined
}

export function compareSearch(raw: Record<string, unknown>): CompareSearch {
  return compact({ baseline: text(raw, 'baseline'), candidate: texts(raw, 'candidate') })
}
