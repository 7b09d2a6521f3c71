import { describe, expect, it } from 'vitest'
import { fill, type Messages } from './messages'

type Area = Messages<Record<string, string>>
const modules = import.meta.glob<Record<string, unknown>>(['../pages/**/messages.ts', '../kept/messages.ts', '../answers/messages.ts', '../glossary/messages.ts', '../charts/messages.ts', './common.ts'], { eager: true })
const areas = Object.entries(modules).flatMap(([path, module]) => Object.values(module).filter(isArea).map((area) => [path, area] as const))

// Words that are the same in both languages: names, and units.
const ALIKE = new Set(['sr-bench', 'CSV', 'JSON', 'Parquet', 'Top', 'Token', 'MoM', 'McNemar'])

/** Whether a text has Latin words that are not names and no Chinese ones. */
function isLeft(text: string): boolean {
  const words = text.replace(/\{[^}]*\}/g, '').match(/[A-Za-z][A-Za-z-]+/g) ?? []
  return !/\p{Script=Han}/u.test(text) && words.some((word) => !ALIKE.has(word))
}

function isArea(value: unknown): value is Area {
  return typeof value === 'object' && value !== null && 'en' in value && 'zh' in value
}

function names(text: string): string[] {
  return [...new Set([...text.matchAll(/\{(\w+)/g)].map((found) => found[1]!))].sort()
}

describe('the texts', () => {
  it('are found', () => expect(areas.length).toBeGreaterThan(10))

  it.each(areas)('of %s are in Chinese where they are in English', (_path, area) => {
    const left = Object.entries(area.zh).filter(([, text]) => isLeft(text))
    expect(left).toEqual([])
    expect(Object.entries(area.en).filter(([, text]) => /\p{Script=Han}/u.test(text))).toEqual([])
  })

  it.each(areas)('of %s mention the same values in both languages', (_path, area) => {
    // A sentence that the service says in English is put together from its figures elsewhere.
    const own = Object.keys(area.en).filter((key) => area.en[key] !== '{service}')
    const differing = own.filter((key) => names(area.en[key]!).join() !== names(area.zh[key]!).join())
    expect(differing).toEqual([])
  })
})

describe('fill', () => {
  it('puts values in and chooses between one and many', () => {
    expect(fill('{n} {n|run|runs} of {who}', { n: 1, who: '$&' })).toBe('1 run of $&')
    expect(fill('{n} {n|run|runs}', { n: '2' })).toBe('2 runs')
    expect(fill('{missing}', {})).toBe('{missing}')
  })
})
