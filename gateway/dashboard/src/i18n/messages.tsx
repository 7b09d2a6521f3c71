// Texts in two languages, kept beside the pages that show them and loaded with them.
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from 'react'
import { setNumberLocale } from '../format/numbers'
import { setTimeLocale } from '../format/time'

export const LANGUAGES = { en: 'English', zh: '中文' } as const
export type Language = keyof typeof LANGUAGES
type Texts = Record<string, string>
/** Texts of one area: the English ones say which there are. */
export interface Messages<T extends Texts> {
  en: T
  zh: { [K in keyof T]: string }
}
export type Translate<T extends Texts> = (key: keyof T & string, values?: Readonly<Record<string, string | number | bigint>>) => string

const STORED = 'sr-bench-language'

/** Declares the texts of an area; a missing translation does not compile. */
export function defineMessages<const T extends Texts>(en: T, zh: { [K in keyof T]: string }): Messages<T> {
  return { en, zh }
}

/**
 * `{name}` is replaced by the value; `{name|one|many}` by the first word when the value is 1, else by the second.
 */
export function fill(text: string, values: Readonly<Record<string, string | number | bigint>> = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (all, name: string, one?: string, many?: string) => {
    const value = values[name]
    if (value === undefined) return all
    if (one === undefined) return String(value)
    return (String(value) === '1' ? one : many) ?? ''
  })
}

/** A text as a sentence of its own: with a capital at its beginning. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

interface Choice {
  language: Language
  setLanguage: (language: Language) => void
}
const Context = createContext<Choice>({ language: 'en', setLanguage: () => undefined })

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setState] = useState<Language>(first)
  // Formatters are plain functions: they must know before the first text is made.
  setNumberLocale(language)
  setTimeLocale(language)
  useEffect(() => {
    document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  }, [language])
  const setLanguage = useCallback((next: Language) => {
    try {
      localStorage.setItem(STORED, next)
    } catch {
      // A browser that stores nothing still shows the chosen language until it is closed.
    }
    setState(next)
  }, [])
  const choice = useMemo(() => ({ language, setLanguage }), [language, setLanguage])
  return <Context.Provider value={choice}>{children}</Context.Provider>
}

function first(): Language {
  let stored: string | null = null
  try {
    stored = localStorage.getItem(STORED)
  } catch {
    stored = null
  }
  if (stored === 'en' || stored === 'zh') return stored
  return navigator.language.startsWith('zh') ? 'zh' : 'en'
}

export function useLanguage(): Choice {
  return useContext(Context)
}

/** The texts of an area in the reader's language. */
export function useTexts<T extends Texts>(messages: Messages<T>): Translate<T> {
  const { language } = useLanguage()
  return useCallback(
    (key, values) => fill((messages[language] as Texts)[key] ?? messages.en[key] ?? key, values),
    [messages, language],
  )
}
