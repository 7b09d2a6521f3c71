import { Alert, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '../../api/errors'
import { CopyButton } from '../../components/CopyButton'
import { CopyCommand } from '../../components/CopyCommand'
import { Loading, Stale, Unavailable } from '../../components/Notices'
import { Page } from '../../components/Page'
import { command } from '../../format/command'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { useRefusal } from '../../i18n/problems'
import './compare.css'
import { messages } from './messages'
import { Picker, type Choice } from './Picker'
import { comparisonQuery } from './queries'
import { Replay } from './Replay'
import { Results } from './Results'
import type { CompareSearch } from './search'
import { outsideOf, useScope, type Scope } from './useScope'

/** One reference run, any number of others, and what follows. What is compared is in the address. */
export function ComparePage() {
  const t = useTexts(messages)
  const search = useSearch({ from: '/compare' })
  const navigate = useNavigate({ from: '/compare' })
  const compared = choiceOf(search)
  const key = JSON.stringify(compared)
  const [choice, setChoice] = useState<Choice>(compared)
  useEffect(() => setChoice(JSON.parse(key) as Choice), [key])
  const changed = JSON.stringify(choice) !== key
  const compare = (candidates: string[]) => {
    setChoice({ ...choice, candidates })
    const { experiment, scope: wide, cost, scale } = search
    void navigate({ search: { baseline: choice.baseline, candidate: candidates, margin: choice.margin, cost, scale, experiment, scope: wide }, resetScroll: false })
  }
  const scope = useScope(search)
  if (scope.kind === 'reading') return <Loading />
  if (scope.kind === 'unreadable') return <Unavailable what={t('whatExperiment')} error={scope.error} retry={scope.retry} />
  const outside = outsideOf(scope, [...(compared.baseline ? [compared.baseline] : []), ...compared.candidates])
  return (
    <Page title={t('title')} lead={t('lead')} actions={<Actions search={search} />}>
      <ScopeLine search={search} scope={scope} outside={outside} />
      {outside.length === 0 && <Picker choice={choice} onChange={setChoice} onCompare={compare} within={scope.kind === 'experiment' ? scope.runs : undefined} />}
      {outside.length === 0 && compared.baseline !== undefined && compared.candidates.length > 0 && (changed ? <p role="status" className="note">{t('changed')}</p> : <Compared search={search} />)}
      <Replay />
    </Page>
  )
}

function choiceOf(search: CompareSearch): Choice {
  return { baseline: search.baseline, candidates: search.candidate ?? [], margin: search.margin }
}

/** Which runs are offered, and the click that offers more. */
function ScopeLine({ search, scope, outside }: { search: CompareSearch; scope: Scope; outside: string[] }) {
  const t = useTexts(messages)
  const navigate = useNavigate({ from: '/compare' })
  if (search.experiment === undefined) return null
  const to = (part: CompareSearch) => void navigate({ search: { experiment: search.experiment, ...part } })
  if (scope.kind !== 'experiment') {
    return (
      <p className="actions note">
        {t('scopeAll')}
        <Button size="compact-sm" variant="default" onClick={() => to({})}>
          {t('scopeNarrow')}
        </Button>
      </p>
    )
  }
  return (
    <>
      <p className="actions note">
        {t('scopeExperiment', { name: scope.name })}
        <Button size="compact-sm" variant="default" onClick={() => to({ scope: 'all', baseline: outside.includes(search.baseline ?? '') ? undefined : search.baseline })}>
          {t('scopeWiden')}
        </Button>
      </p>
      {outside.length > 0 && (
        <Alert color="orange" variant="light" role="alert" className="notice">
          {t('scopeOutside', { runs: outside.join(', ') })}
        </Alert>
      )}
    </>
  )
}

function Actions({ search }: { search: CompareSearch }) {
  const words = useTexts(common)
  if (search.baseline === undefined || !search.candidate) return null
  const margin = search.margin === undefined ? [] : ['--margin', String(search.margin / 1000)]
  return (
    <>
      <CopyCommand text={command('compare', search.baseline, ...search.candidate, ...margin)} />
      <CopyButton text={location.href} label={words('copyLink')} />
    </>
  )
}

function Compared({ search }: { search: CompareSearch }) {
  const t = useTexts(messages)
  const report = useQuery(comparisonQuery(search.baseline ?? '', search.candidate ?? [], search.margin))
  if (report.data) {
    return (
      <>
        {report.error && <Stale error={report.error} />}
        <Results report={report.data} search={search} />
      </>
    )
  }
  if (report.error) return <Refused error={report.error} retry={() => void report.refetch()} />
  return <Loading what={t('whatComparison')} />
}

/** One sentence a reason; the facts of each stand under its name. */
function sentencesOf(error: ApiError, refusal: ReturnType<typeof useRefusal>): string[] {
  const reasons = (error.facts['reasons'] ?? error.reason).split(',')
  const sentences = error.message.split('; ')
  return reasons.map((reason, index) => {
    const own = Object.entries(error.facts).filter(([name]) => name.startsWith(`${reason}.`))
    const facts = own.length > 0 ? Object.fromEntries(own.map(([name, value]) => [name.slice(reason.length + 1), value])) : error.facts
    return refusal(reason, reasons.length === sentences.length ? sentences[index]! : index === 0 ? error.message : '', facts)
  }).filter((sentence) => sentence !== '')
}

/** Why runs cannot be compared, every reason a sentence; anything else is a failed read. */
function Refused({ error, retry }: { error: unknown; retry: () => void }) {
  const t = useTexts(messages)
  const refusal = useRefusal()
  if (!(error instanceof ApiError) || error.trouble !== 'refused') return <Unavailable what={t('whatComparison')} error={error} retry={retry} />
  return (
    <Alert color="orange" variant="light" role="alert" title={t('refused')} className="notice">
      <ul className="sentences">
        {sentencesOf(error, refusal).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <p className="note">
        <code>{error.facts['reasons'] ?? error.reason}</code>
      </p>
    </Alert>
  )
}
