import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  plugins: [react()],
  build: {
    // One style sheet: a part that is loaded later never waits for another file than its script.
    cssCodeSplit: false,
    target: 'es2022',
    // The strict Content-Security-Policy allows no inline scripts, and `data:` only for pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Written for the size check in the tests.
    manifest: true,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8090' } },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
})
