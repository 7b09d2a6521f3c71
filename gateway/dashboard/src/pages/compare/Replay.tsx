import { visible } from '../../format/visible'
import { Alert, Button, Select } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, type Answer } from '../../api/client'
import { ApiError } from '../../api/errors'
import type { RunRow } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { Loaded } from '../../components/Notices'
import { Section } from '../../components/Page'
import { command } from '../../format/command'
import { moment } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { useRefusal } from '../../i18n/problems'
import { StartError, Unsettled } from '../../submissions/Unsettled'
import { messages } from './messages'
import { replayBody, replayOf, useReplay } from './replaySubmission'

type Options = Answer<'/replay-options'>
const PAGE = 10
const SLOW_MS = 65_000

/** Saved answers of single models, taken as a preview routes them: an estimate of a routing change, without a model call. */
export function Replay() {
  const t = useTexts(messages)
  const session = useSession()
  const [open, setOpen] = useState(false)
  return (
    <details className="section fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('replay')}</summary>
      {open && <Estimate key={session.actor} actor={session.actor ?? ''} />}
    </details>
  )
}

function Estimate({ actor }: { actor: string }) {
  const t = useTexts(messages)
  const session = useSession()
  const { start, open } = useReplay(actor)
  const [baseline, setBaseline] = useState<string | null>(null)
  const [preview, setPreview] = useState<string | null>(null)
  if (open) {
    return (
      <Section title={t('replayReconcile')} note={t('replayReconcileText')}>
        <Unsettled submission={open} start={start} body={replayBody(open)} facts={[]} button={t('replayReconcileButton')} />
      </Section>
    )
  }
  return (
    <div className="stack-gap">
      <p className="note">{t('replayNote')}</p>
      <div className="filters">
        <RunChoice
          label={t('replayBaseline')}
          none={t('replayNoBaselines')}
          baseline={null}
          rows={(page) => page.baselines}
          value={baseline}
          onChange={(id) => {
            setBaseline(id)
            setPreview(null)
            start.reset()
          }}
        />
        {baseline && <RunChoice key={baseline} label={t('replayPreview')} none={t('replayNoPreviews')} baseline={baseline} rows={(page) => page.options} value={preview} onChange={setPreview} />}
      </div>
      <Refusals error={start.error} />
      <div className="actions">
        <Button disabled={!baseline || !preview || !session.can_write} loading={start.isPending} onClick={() => baseline && preview && start.mutate(replayOf(actor, baseline, preview))}>
          {t('replayCreate')}
        </Button>
        {baseline && preview && <CopyCommand text={command('replay', '--baseline', baseline, '--preview', preview)} />}
      </div>
    </div>
  )
}

interface ChoiceProps {
  label: string
  none: string
  baseline: string | null
  rows: (page: Options) => RunRow[]
  value: string | null
  onChange: (id: string | null) => void
}

/** Runs that the service has found to fit. */
function RunChoice({ label, none, baseline, rows, value, onChange }: ChoiceProps) {
  const t = useTexts(messages)
  const options = useInfiniteQuery({
    queryKey: ['replay-options', baseline],
    queryFn: ({ pageParam, signal }) => get('/replay-options', { query: { baseline_run_id: baseline ?? undefined, after: pageParam, limit: PAGE }, signal, deadlineMs: SLOW_MS }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Options) => page.next_cursor ?? undefined,
  })
  return (
    <Loaded query={{ ...options, data: options.data?.pages }} what={t('whatReplayOptions')}>
      {(pages) => {
        const found = pages.flatMap(rows)
        if (found.length === 0 && !options.hasNextPage) return <p className="note">{none}</p>
        return (
          <>
            <Select label={label} searchable clearable data={found.map((run) => ({ value: run.id, label: labelOf(run) }))} value={value} onChange={onChange} className="filter-wide" />
            {options.hasNextPage && (
              <Button variant="default" loading={options.isFetchingNextPage} onClick={() => void options.fetchNextPage()}>
                {t('loadMore')}
              </Button>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

function labelOf(run: RunRow): string {
  return `${visible(run.manifest.name || run.id)} · ${run.manifest.targets.map((target) => target.model).join(', ')} · ${moment(run.created_at)}`
}

/** Why two runs make no estimate: the service lists every reason. */
function Refusals({ error }: { error: Error | null }) {
  const t = useTexts(messages)
  const refusal = useRefusal()
  const reasons = error instanceof ApiError ? (error.body.reasons ?? []) : []
  if (reasons.length === 0) return <StartError error={error} />
  const sentences = [...new Set(reasons.map((reason) => refusal(String(reason.code), String(reason.message), { case_id: String(reason.case_id) })))]
  return (
    <Alert color="orange" variant="light" role="alert" title={t('replayRefused')}>
      <ul className="sentences">
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Alert>
  )
}
