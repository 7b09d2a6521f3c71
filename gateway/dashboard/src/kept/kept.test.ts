import { describe, expect, it } from 'vitest'
import { parseKept } from './kept'
import { notesIn, withNote } from './notes'
import { MOST_VIEWS, same, viewsIn, withView } from './views'

const note = { case_id: 'c', target_id: 't', text: 'odd', at: 1 }

describe('what is kept', () => {
  it('may be anything, and is read as what it should be', () => {
    expect(parseKept(null, viewsIn)).toEqual([])
    expect(parseKept('{broken', viewsIn)).toEqual([])
    expect(parseKept('"text"', notesIn)).toEqual({})
    expect(viewsIn([1, null, { name: '', search: {} }, { name: 'a', search: [] }, { name: 'b', search: { q: 'x' } }])).toEqual([{ name: 'b', search: { q: 'x' } }])
    expect(viewsIn(Array(MOST_VIEWS + 9).fill({ name: 'b', search: {} }))).toHaveLength(MOST_VIEWS)
    expect(notesIn({ 1: note, x: note, 2: { ...note, text: '' }, 3: 'text' })).toEqual({ 1: note })
  })

  it('has one view of a name', () => {
    expect(withView([{ name: 'a', search: {} }, { name: 'b', search: {} }], { name: 'a', search: { q: 'x' } })).toEqual([
      { name: 'b', search: {} },
      { name: 'a', search: { q: 'x' } },
    ])
  })

  it('compares what is asked for, not how it is written', () => {
    expect(same({ a: 1, b: undefined, c: true }, { c: true, a: 1 })).toBe(true)
    expect(same({ a: 1 }, { a: 2 })).toBe(false)
  })

  it('forgets a note without a text, and all when it was the last', () => {
    expect(withNote({}, 3, note)).toEqual({ 3: note })
    expect(withNote({ 3: note, 4: note }, 3, { ...note, text: '  ' })).toEqual({ 4: note })
    expect(withNote({ 3: note }, 3, { ...note, text: '' })).toBeNull()
  })
})
