import '@mantine/core/styles.css'
import './styles/tokens.css'
import './styles/app.css'
import { createTheme, MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { LanguageProvider } from './i18n/messages'
import { makeRouter } from './app/router'
import { SessionGate } from './app/session'

const theme = createTheme({
  primaryColor: 'indigo',
  // Scroll locks write style elements, which the Content-Security-Policy forbids.
  components: { Drawer: { defaultProps: { lockScroll: false } }, Modal: { defaultProps: { lockScroll: false } } },
})

const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: false, refetchOnReconnect: true, networkMode: 'always', staleTime: 1_000 },
    mutations: { retry: false, networkMode: 'always' },
  },
})
const router = makeRouter(queries)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    {/* Variables and classes come from the style sheets: the Content-Security-Policy allows no style elements. */}
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <LanguageProvider>
        <QueryClientProvider client={queries}>
          <SessionGate>
            <RouterProvider router={router} />
          </SessionGate>
        </QueryClientProvider>
      </LanguageProvider>
    </MantineProvider>
  </StrictMode>,
)
