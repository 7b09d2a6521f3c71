import { Alert, Button, Checkbox, NumberInput, Select, TextInput } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Empty, Loaded } from '../../components/Notices'
import { Section } from '../../components/Page'
import { StatusPill, TargetChip } from '../../components/Status'
import { count } from '../../format/numbers'
import { moment } from '../../format/time'
import { sentence, useTexts } from '../../i18n/messages'
import { useRefusal } from '../../i18n/problems'
import { messages } from './messages'
import { optionsQuery, type Contender, type Options } from './queries'
import { MOST_CANDIDATES } from './search'

/** What is chosen, before it is compared. */
export interface Choice {
  baseline: string | undefined
  candidates: string[]
  margin: number | undefined
}

interface Props {
  choice: Choice
  onChange: (choice: Choice) => void
  onCompare: (order: string[]) => void
  /** The only runs that are offered; all without it. */
  within: ReadonlySet<string> | undefined
}

/** A reference run and any number of runs to compare with it. */
export function Picker({ choice, onChange, onCompare, within }: Props) {
  const t = useTexts(messages)
  const ready = choice.baseline !== undefined && choice.candidates.length > 0
  const partners = useInfiniteQuery({ ...optionsQuery(choice.baseline), enabled: choice.baseline !== undefined })
  const known = (partners.data?.pages ?? []).flatMap((page) => page.options)
  return (
    <Section title={t('choose')}>
      <Reference choice={choice} onChange={onChange} within={within} />
      {choice.baseline !== undefined && (
        <Loaded query={{ ...partners, data: partners.data?.pages }} what={t('whatOptions')}>
          {(pages) => (
            <>
              <Candidates pages={pages.map((page) => narrowed(page, within))} choice={choice} onChange={onChange} />
              {partners.hasNextPage && (
                <Button variant="default" size="compact-sm" className="self-start" loading={partners.isFetchingNextPage} onClick={() => void partners.fetchNextPage()}>
                  {t('loadMore')}
                </Button>
              )}
            </>
          )}
        </Loaded>
      )}
      <div className="filters">
        <NumberInput
          label={t('margin')}
          description={t('marginHint')}
          value={choice.margin === undefined ? '' : choice.margin / 10}
          onChange={(value) => onChange({ ...choice, margin: typeof value === 'number' && value > 0 ? Math.round(value * 10) : undefined })}
          min={0.1}
          max={99.9}
          step={0.5}
          decimalScale={1}
          hideControls
          className="margin-input"
        />
      </div>
      <div className="actions">
        <Button disabled={!ready} onClick={() => onCompare(inOrder(choice.candidates, known))}>
          {choice.candidates.length === 0 ? t('compareNone') : t('compare', { n: choice.candidates.length })}
        </Button>
        {!ready && <span className="note">{t('nothing')}</span>}
        {choice.candidates.length > 0 && <span className="note">{t('selected', { n: choice.candidates.length })}</span>}
      </div>
    </Section>
  )
}

/** A page without the runs outside the scope. */
function narrowed(page: Options, within: ReadonlySet<string> | undefined): Options {
  if (within === undefined) return page
  const inside = (run: Contender) => within.has(run.id)
  return { ...page, baselines: page.baselines.filter(inside), options: page.options.filter(inside), incompatible: page.incompatible.filter(inside) }
}

/** Oldest first, which is the order of iterations; runs of unknown age keep their place at the end. */
function inOrder(ids: readonly string[], known: readonly Contender[]): string[] {
  const age = new Map(known.map((run) => [run.id, run.created_at ?? Infinity]))
  return [...ids].sort((one, other) => {
    const [a, b] = [age.get(one) ?? Infinity, age.get(other) ?? Infinity]
    return a === b ? ids.indexOf(one) - ids.indexOf(other) : a - b
  })
}

function Reference({ choice, onChange, within }: Omit<Props, 'onCompare'>) {
  const t = useTexts(messages)
  const baselines = useInfiniteQuery(optionsQuery(undefined))
  const runs = (baselines.data?.pages ?? []).flatMap((page) => narrowed(page, within).baselines)
  const chosen = choice.baseline
  const data = runs.map((run) => ({ value: run.id, label: labelOf(run) }))
  if (chosen !== undefined && !runs.some((run) => run.id === chosen)) data.unshift({ value: chosen, label: `${chosen} · ${t('notInList')}` })
  return (
    <Loaded query={{ ...baselines, data: baselines.data?.pages }} what={t('whatOptions')}>
      {(pages) => (
        <>
          {runs.length === 0 && chosen === undefined && !pages.at(-1)?.has_more && (
            <Empty title={t('noBaselines')}>
              <p>{t('noBaselinesText')}</p>
            </Empty>
          )}
          <div className="filters">
            <Select
              label={t('reference')}
              placeholder={t('referenceHint')}
              data={data}
              value={chosen ?? null}
              searchable
              clearable
              className="reference-select"
              onChange={(value) => onChange({ ...choice, baseline: value ?? undefined, candidates: [] })}
            />
            {baselines.hasNextPage && (
              <Button variant="default" loading={baselines.isFetchingNextPage} onClick={() => void baselines.fetchNextPage()}>
                {t('loadMore')}
              </Button>
            )}
          </div>
        </>
      )}
    </Loaded>
  )
}

function labelOf(run: Contender): string {
  return [run.name || run.id, run.targets.map((target) => target.model).join(', '), moment(run.created_at)].filter(Boolean).join(' · ')
}

function Candidates({ pages, choice, onChange }: { pages: Options[]; choice: Choice; onChange: (choice: Choice) => void }) {
  const t = useTexts(messages)
  const [text, setText] = useState('')
  const options = pages.flatMap((page) => page.options)
  const incompatible = pages.flatMap((page) => page.incompatible)
  const baseline = pages[0]?.baseline
  const unverified = pages.reduce((sum, page) => sum + page.unverified_pairs, 0)
  const shown = options.filter((run) => labelOf(run).toLowerCase().includes(text.toLowerCase()))
  const elsewhere = choice.candidates.filter((id) => !options.some((run) => run.id === id))
  const set = (candidates: string[]) => onChange({ ...choice, candidates: candidates.slice(0, MOST_CANDIDATES) })
  if (baseline && baseline.reasons.length > 0) {
    return (
      <Alert color="orange" variant="light" role="note" title={t('baselineNot')} className="notice">
        <Reasons run={baseline} />
      </Alert>
    )
  }
  return (
    <fieldset className="candidates">
      <legend>{t('candidates')}</legend>
      {options.length === 0 && elsewhere.length === 0 ? (
        <Empty title={t('noCandidates')}>
          <p>{t('noCandidatesText')}</p>
          {choice.baseline && (
            <Link to="/create" search={{ baseline: choice.baseline }} className="button-link">
              {t('derive')}
            </Link>
          )}
        </Empty>
      ) : (
        <>
          <div className="filters">
            {options.length > 6 && <TextInput label={t('searchRuns')} value={text} maxLength={200} onChange={(event) => setText(event.currentTarget.value)} />}
            <Button variant="default" onClick={() => set([...new Set([...choice.candidates, ...shown.map((run) => run.id)])])}>
              {t('selectAll')}
            </Button>
            <Button variant="default" disabled={choice.candidates.length === 0} onClick={() => set([])}>
              {t('clearAll')}
            </Button>
          </div>
          <ul className="option-list">
            {elsewhere.map((id) => (
              <li key={id}>
                <Checkbox label={`${id} · ${t('notInList')}`} checked onChange={() => set(choice.candidates.filter((other) => other !== id))} />
              </li>
            ))}
            {shown.map((run) => (
              <Option key={run.id} run={run} chosen={choice.candidates.includes(run.id)} onToggle={(on) => set(on ? [...choice.candidates, run.id] : choice.candidates.filter((id) => id !== run.id))} />
            ))}
          </ul>
          {choice.candidates.length >= MOST_CANDIDATES && <p className="note">{t('most', { n: MOST_CANDIDATES })}</p>}
        </>
      )}
      {pages.some((page) => page.scan_limited) && <p className="note">{t('scanLimited', { n: count(unverified) ?? '' })}</p>}
      {incompatible.length > 0 && (
        <details className="fold">
          <summary>{t('notComparable', { n: incompatible.length })}</summary>
          <ul className="option-list">
            {incompatible.map((run) => (
              <li key={run.id} className="refused-run">
                <RunLine run={run} />
                <Reasons run={run} />
              </li>
            ))}
          </ul>
          {choice.baseline && (
            <Link to="/create" search={{ baseline: choice.baseline }}>
              {t('derive')}
            </Link>
          )}
        </details>
      )}
    </fieldset>
  )
}

function Option({ run, chosen, onToggle }: { run: Contender; chosen: boolean; onToggle: (on: boolean) => void }) {
  return (
    <li>
      <Checkbox label={<RunLine run={run} />} checked={chosen} onChange={(event) => onToggle(event.currentTarget.checked)} />
    </li>
  )
}

function RunLine({ run }: { run: Contender }) {
  return (
    <span className="run-line">
      <strong className="wrap">{run.name || run.id}</strong>
      {run.targets.map((target) => (
        <TargetChip key={target.id} model={target.model} kind={target.kind} />
      ))}
      <StatusPill status={run.status} />
      <span className="soft">{moment(run.created_at)}</span>
    </span>
  )
}

/** Why a run cannot take part: a sentence for each reason, with the reason that programs branch on. */
function Reasons({ run }: { run: Contender }) {
  const refusal = useRefusal()
  return (
    <ul className="sentences">
      {run.reasons.map((reason) => (
        <li key={reason.reason + reason.message}>
          {sentence(refusal(reason.reason, reason.message, reason.facts))} <code>{reason.reason}</code>
        </li>
      ))}
    </ul>
  )
}
