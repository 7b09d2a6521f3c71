import { Alert, Button, Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, type Answer } from '../../../api/client'
import { stringifyExact } from '../../../api/exactJson'
import type { Run } from '../../../api/types'
import { Loaded } from '../../../components/Notices'
import { Scroll } from '../../../components/Scroll'
import { Value } from '../../../components/Value'
import { count, percent, signed, usd } from '../../../format/numbers'
import { visible } from '../../../format/visible'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import { changedPrices, frozenPrices, isPrice, KINDS, savedShare, typedOf, type Price, type Typed } from './prices'

type Estimate = Answer<'/runs/{run_id}/price-estimate'>
type Row = Estimate['targets'][number]

/** What the run's saved calls would have cost at other prices; folded, for it is no figure of the run. */
export function WhatIf({ run }: { run: Run }) {
  const t = useTexts(messages)
  const [open, setOpen] = useState(false)
  return (
    <details className="section fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('title')}</summary>
      {open && <Prices run={run} />}
    </details>
  )
}

function Prices({ run }: { run: Run }) {
  const t = useTexts(messages)
  const frozen = frozenPrices(run.manifest.targets)
  const [typed, setTyped] = useState<Typed>(() => typedOf(frozen))
  const [asked, setAsked] = useState<Record<string, Price> | null>(null)
  const changed = changedPrices(typed, frozen)
  if (Object.keys(frozen).length === 0) return <p className="note">{t('noPrices')}</p>
  return (
    <div className="stack-gap">
      <p className="note">{t('note')}</p>
      <PriceTable typed={typed} onChange={setTyped} />
      <div className="actions">
        <Button disabled={changed === null} onClick={() => setAsked(changed)}>
          {t('estimate')}
        </Button>
        <Button
          variant="default"
          onClick={() => {
            setTyped(typedOf(frozen))
            setAsked(null)
          }}
        >
          {t('reset')}
        </Button>
        {changed === null && (
          <span className="bad" role="alert">
            {t('bad')}
          </span>
        )}
      </div>
      {asked && <Estimated run={run} prices={asked} />}
    </div>
  )
}

function PriceTable({ typed, onChange }: { typed: Typed; onChange: (typed: Typed) => void }) {
  const t = useTexts(messages)
  return (
    <Scroll label={t('prices')}>
      <table className="table" aria-label={t('prices')}>
        <caption className="note">{t('prices')}</caption>
        <thead>
          <tr>
            <th scope="col">{t('model')}</th>
            {KINDS.map((kind) => (
              <th scope="col" key={kind}>
                {t(kind)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(typed).map(([model, texts]) => (
            <tr key={model}>
              <th scope="row">{visible(model)}</th>
              {KINDS.map((kind) => (
                <td key={kind}>
                  <TextInput
                    size="xs"
                    miw={72}
                    inputMode="decimal"
                    aria-label={t('priceOf', { model: visible(model), kind: t(kind) })}
                    error={!isPrice(texts[kind])}
                    value={texts[kind]}
                    onChange={(event) => onChange({ ...typed, [model]: { ...texts, [kind]: event.currentTarget.value } })}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Estimated({ run, prices }: { run: Run; prices: Record<string, Price> }) {
  const t = useTexts(messages)
  const text = stringifyExact(prices)
  const estimate = useQuery({
    queryKey: ['price-estimate', run.id, run.updated_at, text],
    queryFn: ({ signal }) => get('/runs/{run_id}/price-estimate', { path: { run_id: run.id }, query: { prices: text }, signal, deadlineMs: 60_000 }),
    placeholderData: (previous) => previous,
  })
  return (
    <Loaded query={estimate} what={t('what')}>
      {(found) => (
        <Alert color="yellow" variant="light" title={t('estimated')} role="status">
          <EstimateTable rows={found.targets} run={run} />
        </Alert>
      )}
    </Loaded>
  )
}

function EstimateTable({ rows, run }: { rows: Row[]; run: Run }) {
  const t = useTexts(messages)
  const singles = run.manifest.targets.filter((target) => target.kind === 'single').map((target) => target.id)
  const [chosen, setChosen] = useState<string | null>(singles.at(-1) ?? null)
  const reference = rows.find((row) => row.target_id === chosen)
  return (
    <div className="stack-gap">
      {singles.length > 0 && rows.length > 1 && <Select label={t('against')} data={singles} value={chosen} onChange={setChosen} maw={260} />}
      <Scroll label={t('estimated')}>
        <table className="table" aria-label={t('estimated')}>
          <thead>
            <tr>
              <th scope="col">{t('target')}</th>
              <th scope="col" className="num">{t('calls')}</th>
              <th scope="col" className="num">{t('frozen')}</th>
              <th scope="col" className="num">{t('other')}</th>
              <th scope="col" className="num">{t('change')}</th>
              {reference && <th scope="col" className="num">{t('saving', { name: visible(reference.target_id) })}</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <EstimateRow key={row.target_id} row={row} reference={reference} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </div>
  )
}

function EstimateRow({ row, reference }: { row: Row; reference: Row | undefined }) {
  const t = useTexts(messages)
  const why = (n: number) => (n > 0 ? t('unknown', { n }) : undefined)
  const change = savedShare(row.estimated_cost_usd, row.frozen_cost_usd)
  const saved = reference && reference !== row ? savedShare(row.estimated_cost_usd, reference.estimated_cost_usd) : null
  return (
    <tr>
      <th scope="row">{visible(row.target_id)}</th>
      <td className="num">{count(row.call_count)}</td>
      <td className="num">
        <Value why={why(row.frozen_unknown_count)}>{usd(row.frozen_cost_usd)}</Value>
      </td>
      <td className="num">
        <Value why={why(row.estimated_unknown_count)}>{usd(row.estimated_cost_usd)}</Value>
      </td>
      <td className="num">
        <Value>{share(change === null ? null : -change)}</Value>
      </td>
      {reference && <td className="num">{reference === row ? '' : <Value>{share(saved)}</Value>}</td>}
    </tr>
  )
}

function share(value: number | null): string | null {
  return signed(value, (size) => percent(size))
}
