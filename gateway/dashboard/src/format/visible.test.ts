import { describe, expect, it } from 'vitest'
import { directionOf, hides, visible } from './visible'

describe('what hides', () => {
  it('is written out', () => {
    expect(visible('\u202eevil\u202c')).toBe('⟨U+202E⟩evil⟨U+202C⟩')
    expect(visible('\u001b[31mred\u0000')).toBe('⟨U+001B⟩[31mred⟨U+0000⟩')
    expect(visible('\u{e0041}\ufeff')).toBe('⟨U+E0041⟩⟨U+FEFF⟩')
  })

  it('is not what people write', () => {
    const written = 'tab\tline\r\nnaïve 中文 العربية नमस्ते 👩‍💻 a\u0301'
    expect(visible(written)).toBe(written)
    expect(hides(written)).toBe(false)
    expect(hides('a\u2066b')).toBe(true)
    expect(hides('a\u2066b')).toBe(true)
  })

  it('does not decide the direction', () => {
    expect(directionOf('\u202eabc')).toBeUndefined()
    expect(directionOf('abc שלום')).toBe('auto')
  })
})
