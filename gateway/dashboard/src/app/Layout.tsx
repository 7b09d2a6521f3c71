import { Button, Menu, useMantineColorScheme, type MantineColorScheme } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { useSession, useSignOut } from './session'
import { healthQuery } from '../api/queries'
import { common } from '../i18n/common'
import { LANGUAGES, useLanguage, useTexts, type Language } from '../i18n/messages'

const PAGES = [
  { to: '/runs', text: 'runs' },
  { to: '/create', text: 'create' },
  { to: '/compare', text: 'compare' },
  { to: '/datasets', text: 'datasets' },
  { to: '/targets', text: 'targets' },
] as const

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
        <nav aria-label={t('navigation')} className="nav">
          {PAGES.map((page) => (
            <Link key={page.to} to={page.to} className="nav-link" activeProps={{ 'aria-current': 'page' }}>
              {t(page.text)}
            </Link>
          ))}
        </nav>
        <div className="topbar-end">
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
  const { colorScheme, setColorScheme } = useMantineColorScheme()
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
