import { Alert, Button, PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { post, setCsrfToken } from '../../api/client'
import { defineMessages, useTexts } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { Page } from '../../components/Page'

const messages = defineMessages(
  {
    title: 'Sign in',
    lead: 'This service asks for its token. It is checked once and not kept in the browser.',
    expired: 'Your session has ended. What you filled in is still there after you sign in again.',
    token: 'Token',
    where: 'The operator set it as SR_BENCH_TOKEN.',
    submit: 'Sign in',
  },
  {
    title: '登录',
    lead: '此服务需要令牌。令牌只校验一次，不会保存在浏览器中。',
    expired: '会话已结束。重新登录后，已填写的内容仍在。',
    token: '令牌',
    where: '由运维人员通过 SR_BENCH_TOKEN 设置。',
    submit: '登录',
  },
)

/** Shows the token to the service, once. */
export function SignIn({ expired, onDone }: { expired: boolean; onDone: (actor: string | null) => void }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const [token, setToken] = useState('')
  const signIn = useMutation({
    mutationFn: () => post('/session', { body: { token } }),
    onSuccess: (session) => {
      setCsrfToken(session.csrf_token ?? '')
      setToken('')
      onDone(session.actor)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token) signIn.mutate()
  }
  return (
    <main className="sign-in">
      <Page title={t('title')} lead={expired ? t('expired') : t('lead')}>
        <form className="section" onSubmit={submit}>
          <PasswordInput label={t('token')} description={t('where')} value={token} onChange={(event) => setToken(event.currentTarget.value)} autoComplete="current-password" autoFocus />
          {signIn.error && (
            <Alert color="red" role="alert">
              {problem(signIn.error)}
            </Alert>
          )}
          <Button type="submit" loading={signIn.isPending} disabled={!token}>
            {t('submit')}
          </Button>
        </form>
      </Page>
    </main>
  )
}
