import type { Dataset } from '../../api/types'

/** A name that people recognise: composed names and digests give way to the benchmarks' titles. */
export function friendlyName(dataset: Pick<Dataset, 'name' | 'benchmarks'>, titles: Readonly<Record<string, string>>): string {
  const named = dataset.benchmarks.map((id) => titles[id] ?? id)
  const made = dataset.name === '' || dataset.name.includes('+') || /[0-9a-f]{16}/.test(dataset.name) || /^[\w.-]+\/(smoke|quick|standard)$/.test(dataset.name)
  return made ? named.slice(0, 3).join(' + ') + (named.length > 3 ? ` + ${named.length - 3}` : '') : dataset.name
}

/** The group of the library that a dataset belongs to. */
export function groupOf(dataset: Pick<Dataset, 'profile' | 'custom_subset'>): 'smoke' | 'quick' | 'standard' | 'custom' {
  if (dataset.custom_subset) return 'custom'
  return dataset.profile === 'smoke' || dataset.profile === 'standard' ? dataset.profile : 'quick'
}

/** An address that may be a link: only the web's own schemes are. */
export function webAddress(text: string): string | null {
  return /^https?:\/\//i.test(text) ? text : null
}
