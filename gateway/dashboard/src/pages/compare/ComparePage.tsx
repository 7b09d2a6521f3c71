import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError } from '../../api/errors'
import { CopyButton } from '../../components/CopyButton'
import { Loading, Stale, Unavailable } from '../../components/Notices'
import { Page } from '../../components/Page'
import { command } from '../../format/command'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import './compare.css'
import { messages } from './messages'
import { Picker, type Choice } from './Picker'
import { comparisonQuery } from './queries'
import { Results } from './Results'
import type { CompareSearch } from './search'

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
    void navigate({ search: { baseline: choice.baseline, candidate: candidates, margin: choice.margin, cost: search.cost, scale: search.scale }, resetScroll: false })
  }
  return (
    <Page title={t('title')} lead={t('lead')} actions={<Actions search={search} />}>
      <Picker choice={choice} onChange={setChoice} onCompare={compare} />
      {compared.baseline !== undefined && compared.candidates.length > 0 && (changed ? <p role="status" className="note">{t('changed')}</p> : <Compared search={search} />)}
    </Page>
  )
}

function choiceOf(search: CompareSearch): Choice {
  return { baseline: search.baseline, candidates: search.candidate ?? [], margin: search.margin }
}

function Actions({ search }: { search: CompareSearch }) {
  const words = useTexts(common)
  if (search.baseline === undefined || !search.candidate) return null
  const margin = search.margin === undefined ? [] : ['--margin', String(search.margin / 1000)]
  return (
    <>
      <CopyButton text={command('compare', search.baseline, ...search.candidate, ...margin)} label={words('copyCommand')} />
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

/** Why runs cannot be compared, every reason a sentence; anything else is a failed read. */
function Refused({ error, retry }: { error: unknown; retry: () => void }) {
  const t = useTexts(messages)
  if (!(error instanceof ApiError) || error.trouble !== 'refused') return <Unavailable what={t('whatComparison')} error={error} retry={retry} />
  return (
    <Alert color="orange" variant="light" role="alert" title={t('refused')} className="notice">
      <ul className="sentences">
        {error.message.split('; ').map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <p className="note">
        <code>{error.facts['reasons'] ?? error.reason}</code>
      </p>
    </Alert>
  )
}
