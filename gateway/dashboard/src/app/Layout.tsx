import { Button, Menu, useMantineColorScheme, type MantineColorScheme } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { Suspense, useCallback, useEffect, useMemo, useState } from 'react'
import { PAGES } from './pages'
import { useSession, useSignOut } from './session'
import { healthQuery } from '../api/queries'
import { LinkRow } from '../components/LinkRow'
import { lazily } from '../components/lazily'
import { useKeys } from '../components/useKeys'
import { common } from '../i18n/common'
import { LANGUAGES, useLanguage, useTexts, type Language } from '../i18n/messages'

const GoTo = lazily(() => import('./GoTo').then((module) => module.GoTo))

/** What stands around every page. */
export function Layout() {
  const t = useTexts(common)
  const health = useQuery(healthQuery)
  return (
    <>
      <a className="skip" href="#content">
        {t('skip')}
      </a>
      <header className="topbar">
        <Link to="/runs" className="brand">
          <img src="/favicon.svg" alt="" width={24} height={24} />
          <span>{t('product')}</span>
        </Link>
        <LinkRow label={t('navigation')} className="nav">
          {PAGES.map((page) => (
            <Link key={page.to} to={page.to} className="nav-link" activeProps={{ 'aria-current': 'page' }}>
              {t(page.text)}
            </Link>
          ))}
        </LinkRow>
        <div className="topbar-end">
          <GoToButton />
          <LanguageMenu />
          <ThemeMenu />
          <SignOut />
        </div>
      </header>
      {health.error !== null && (
        <p className="outage" role="alert">
          {t('unreachable')}
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <Outlet />
      </main>
    </>
  )
}

/** Everything by its name: opened by a click, by Ctrl K or ⌘ K, or by ? where nobody types. */
function GoToButton() {
  const t = useTexts(common)
  const [open, setOpen] = useState(false)
  const close = useCallback(() => setOpen(false), [])
  useKeys(useMemo(() => ({ '?': () => setOpen(true) }), []))
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      setOpen(true)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return (
    <>
      <Button variant="subtle" color="gray" size="compact-sm" aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen(true)}>
        {t('goTo')}
      </Button>
      {open && (
        <Suspense>
          <GoTo onClose={close} />
        </Suspense>
      )}
    </>
  )
}

function SignOut() {
  const t = useTexts(common)
  const session = useSession()
  const signOut = useSignOut()
  if (!session.needs_token) return null
  return (
    <Button variant="subtle" color="gray" size="compact-sm" onClick={() => void signOut()} title={t('signedInAs', { role: session.role ?? '' })}>
      {t('signOut')}
    </Button>
  )
}

function LanguageMenu() {
  const t = useTexts(common)
  const { language, setLanguage } = useLanguage()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" color="gray" size="compact-sm" aria-label={`${t('language')}: ${LANGUAGES[language]}`}>
          {LANGUAGES[language]}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(LANGUAGES) as Language[]).map((name) => (
          <Menu.Item key={name} lang={name} onClick={() => setLanguage(name)} aria-current={name === language}>
            {LANGUAGES[name]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

const SCHEMES: Record<MantineColorScheme, 'light' | 'dark' | 'system'> = { light: 'light', dark: 'dark', auto: 'system' }

function ThemeMenu() {
  const t = useTexts(common)
  // To suspend transitions it would write a style element, which the Content-Security-Policy forbids.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true })
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" color="gray" size="compact-sm" aria-label={`${t('theme')}: ${t(SCHEMES[colorScheme])}`}>
          {t(SCHEMES[colorScheme])}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(SCHEMES) as MantineColorScheme[]).map((name) => (
          <Menu.Item key={name} onClick={() => setColorScheme(name)} aria-current={name === colorScheme}>
            {t(SCHEMES[name])}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
