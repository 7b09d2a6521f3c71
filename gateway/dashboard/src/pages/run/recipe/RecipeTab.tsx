import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { address, get } from '../../../api/client'
import { stringifyExact } from '../../../api/exactJson'
import { CopyCommand } from '../../../components/CopyCommand'
import { Empty, Loaded } from '../../../components/Notices'
import { Section } from '../../../components/Page'
import { PlainText } from '../../../components/PlainText'
import { Pill } from '../../../components/Status'
import { Value } from '../../../components/Value'
import { command } from '../../../format/command'
import { moment } from '../../../format/time'
import { useTexts } from '../../../i18n/messages'
import { messages } from './messages'
import { verified, type RunRecipe } from './verified'

/** What each router of a run was configured to do when the run started. */
export function RecipeTab() {
  const t = useTexts(messages)
  const { runId } = useParams({ from: '/runs/$runId' })
  const recipes = useQuery({
    queryKey: ['recipes', runId],
    queryFn: async ({ signal }) => (await get('/runs/{run_id}/recipes', { path: { run_id: runId }, signal })).recipes,
    staleTime: Infinity,
  })
  return (
    <Loaded query={recipes} what={t('what')}>
      {(found) =>
        found.length === 0 ? (
          <Empty title={t('none')}>
            <p>{t('noneText')}</p>
          </Empty>
        ) : (
          found.map((entry) => <Snapshot key={entry.target_id} runId={runId} entry={entry} />)
        )
      }
    </Loaded>
  )
}

function Snapshot({ runId, entry }: { runId: string; entry: RunRecipe }) {
  const t = useTexts(messages)
  const recipe = verified(entry)
  const hash = (
    <>
      <dt>{t('configHash')}</dt>
      <dd className="mono">
        <Value why={t('noHash')}>{entry.config_hash}</Value>
      </dd>
    </>
  )
  if (!recipe) {
    return (
      <Section title={entry.target_id} note={t('unavailableNote')}>
        <p>
          <Pill tone="quiet">{t('unavailable')}</Pill> <span className="wrap">{reasonOf(entry, t)}</span>
        </p>
        <dl className="facts">{hash}</dl>
      </Section>
    )
  }
  return (
    <Section title={entry.target_id} note={t('verifiedNote')}>
      <p>
        <Pill tone="good">{t('verified')}</Pill>
      </p>
      <dl className="facts">
        {hash}
        <dt>{t('captured')}</dt>
        <dd>
          <Value>{moment(recipe.captured_at)}</Value>
        </dd>
        <dt>{t('source')}</dt>
        <dd className="mono">{recipe.source_config_hash}</dd>
        <dt>{t('recipe')}</dt>
        <dd className="mono">{recipe.recipe_sha256}</dd>
        <dt>{t('redacted')}</dt>
        <dd className="mono">{recipe.redactions.length > 0 ? recipe.redactions.join(', ') : t('nothingRedacted')}</dd>
      </dl>
      <RecipeText runId={runId} target={entry.target_id} />
      <div className="actions">
        <a className="button-link small" download href={address('/runs/{run_id}/recipes/download', { run_id: runId }, { target_id: entry.target_id })}>
          {t('download', { name: entry.target_id })}
        </a>
        <CopyCommand text={command('recipes', runId, '--target', entry.target_id)} />
      </div>
    </Section>
  )
}

function reasonOf(entry: RunRecipe, t: ReturnType<typeof useTexts<typeof messages.en>>): string {
  if (entry.status === 'captured') return t('mismatch')
  return entry.reason === 'not_requested' ? t('reason_not_requested') : (entry.reason ?? '')
}

/** The recipe's text, read when it is opened. */
function RecipeText({ runId, target }: { runId: string; target: string }) {
  const t = useTexts(messages)
  const [open, setOpen] = useState(false)
  const recipe = useQuery({
    queryKey: ['recipe', runId, target],
    queryFn: ({ signal }) => get('/runs/{run_id}/recipes/download', { path: { run_id: runId }, query: { target_id: target }, signal }),
    enabled: open,
    staleTime: Infinity,
  })
  return (
    <details className="fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('document')}</summary>
      {open && (
        <Loaded query={recipe} what={t('document')}>
          {(found) => <PlainText label={t('document')}>{stringifyExact(found, 2)}</PlainText>}
        </Loaded>
      )}
    </details>
  )
}
