import { Alert, Button, Modal, Radio, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { post, type Body } from '../../../api/client'
import { parseExact, stringifyExact } from '../../../api/exactJson'
import type { CallRow, Run } from '../../../api/types'
import { CopyCommand } from '../../../components/CopyCommand'
import { command, commandWith } from '../../../format/command'
import { common } from '../../../i18n/common'
import { useTexts } from '../../../i18n/messages'
import { useProblem } from '../../../i18n/problems'
import { messages } from './messages'

const VERDICTS = ['happened', 'did-not-happen', 'still-unknown'] as const
type Verdict = (typeof VERDICTS)[number]
type Settlement = Body<'/runs/{run_id}/calls/{call_id}/settle'>

/** A recorded verdict, under the name that requests and commands use. */
export function verdictOf(settlement: NonNullable<CallRow['settlement']>): Verdict {
  return VERDICTS.find((name) => name.replaceAll('-', '_') === settlement.verdict) ?? 'still-unknown'
}

/** What an operator learned of one call. */
export function SettleForm({ run, call, onClose }: { run: Run; call: CallRow; onClose: () => void }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const words = useTexts(common)
  const queries = useQueryClient()
  const [verdict, setVerdict] = useState<Verdict>('happened')
  const [usage, setUsage] = useState('')
  const [model, setModel] = useState(call.selected_model ?? call.model ?? '')
  const [note, setNote] = useState('')
  const given = usageIn(verdict === 'happened' ? usage : '')
  const settle = useMutation({
    mutationFn: (body: Settlement) => post('/runs/{run_id}/calls/{call_id}/settle', { path: { run_id: run.id, call_id: call.id }, body }),
    onSuccess: () => {
      void queries.invalidateQueries()
      onClose()
    },
  })
  const record = () => {
    if (given === undefined) return
    settle.mutate({ as: verdict, note, ...(given === null ? {} : { usage: given, model }) } as Settlement)
  }
  const line = ['settle', run.id, call.id, '--as', verdict, ...(note ? ['--note', note] : [])]
  const shell = given ? commandWith(stringifyExact(model ? { usage: given, model } : given), ...line, '--usage', '-') : command(...line)
  return (
    <Modal opened onClose={onClose} title={t('settleTitle', { case: call.case_id, target: call.target_id })} size="lg">
      <div className="stack-gap">
        <Radio.Group label={t('as')} value={verdict} onChange={(value) => setVerdict(value as Verdict)}>
          <div className="stack-gap gap-y">
            {VERDICTS.map((name) => (
              <Radio key={name} value={name} label={t(`verdict_${name}`)} description={t(`${name}Text`)} />
            ))}
          </div>
        </Radio.Group>
        {verdict === 'happened' && (
          <>
            <Textarea label={t('usage')} description={t('usageHint')} value={usage} rows={4} error={given === undefined && t('badUsage')} onChange={(event) => setUsage(event.currentTarget.value)} />
            <TextInput label={t('model')} value={model} maxLength={256} onChange={(event) => setModel(event.currentTarget.value)} />
          </>
        )}
        <TextInput label={t('from')} value={note} maxLength={1000} onChange={(event) => setNote(event.currentTarget.value)} />
        {settle.error && (
          <Alert color="red" variant="light" role="alert" title={t('settleFailed')}>
            <p className="plain">{problem(settle.error)}</p>
          </Alert>
        )}
        <div className="actions end">
          <CopyCommand text={shell} />
          <Button variant="default" onClick={onClose}>
            {words('cancel')}
          </Button>
          <Button loading={settle.isPending} disabled={given === undefined} onClick={record}>
            {t('record')}
          </Button>
        </div>
      </div>
    </Modal>
  )
}

/** The usage object in a text: `null` for none, `undefined` for something else. */
function usageIn(text: string): object | null | undefined {
  if (text.trim() === '') return null
  try {
    const found = parseExact(text)
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? found : undefined
  } catch {
    return undefined
  }
}
