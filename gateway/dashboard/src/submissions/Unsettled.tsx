import { Alert, Button } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { defineMessages, useTexts } from '../i18n/messages'
import { useProblem } from '../i18n/problems'
import { JsonBlock } from '../components/JsonBlock'
import type { Submission } from './shelf'
import { NotKept } from './useSubmission'

const messages = defineMessages(
  {
    key: 'Key',
    body: 'The request as it was, and will be, sent',
    open: 'Still unsettled',
    failed: 'Nothing was started',
    notKept: 'This browser cannot keep the submission, so nothing was sent. Use the command line instead.',
  },
  {
    key: '键',
    body: '已发送并将再次发送的请求',
    open: '仍未确定',
    failed: '未启动任何内容',
    notKept: '此浏览器无法保存提交内容，因此没有发送任何请求。请改用命令行。',
  },
)

interface Props<S extends Submission> {
  submission: S
  start: UseMutationResult<unknown, Error, S>
  /** The request without what is only this page's. */
  body: unknown
  facts: readonly (readonly [string, string])[]
  button: string
  children?: ReactNode
}

/** A start whose answer never came: what it was, and the one thing that can be done, which is to send the very same again. */
export function Unsettled<S extends Submission>({ submission, start, body, facts, button, children }: Props<S>) {
  const t = useTexts(messages)
  const problem = useProblem()
  return (
    <>
      <dl className="facts">
        {[[t('key'), submission.idempotency_key] as const, ...facts].map(([label, value]) => (
          <div key={label} className="fact">
            <dt>{label}</dt>
            <dd className="mono">{value}</dd>
          </div>
        ))}
      </dl>
      <JsonBlock title={t('body')} value={body} />
      {start.error && (
        <Alert color="orange" variant="light" role="alert" title={t('open')}>
          <p className="plain">{start.error instanceof NotKept ? t('notKept') : problem(start.error)}</p>
        </Alert>
      )}
      <div className="actions">
        {/* Whatever was sent before, its answer is not known here. */}
        <Button loading={start.isPending} onClick={() => start.mutate({ ...submission, unanswered: true })}>
          {button}
        </Button>
        {children}
      </div>
    </>
  )
}

/** Why a start was refused, or was not sent at all. */
export function StartError({ error }: { error: Error | null }) {
  const t = useTexts(messages)
  const problem = useProblem()
  if (!error) return null
  return (
    <Alert color="red" variant="light" role="alert" title={t('failed')}>
      <p className="plain">{error instanceof NotKept ? t('notKept') : problem(error)}</p>
    </Alert>
  )
}
