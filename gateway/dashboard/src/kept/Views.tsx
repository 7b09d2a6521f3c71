import { Alert, Button, CloseButton, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { useSession } from '../app/session'
import { useTexts } from '../i18n/messages'
import { keep, keptKey, parseKept, useKept } from './kept'
import { messages } from './messages'
import { MOST_NAME_CHARS, same, viewsIn, withView, type View } from './views'

type Preset = 'wrong' | 'failed' | 'dearest' | 'slowest' | 'unknownCost' | 'running'

interface Props<S extends object> {
  /** Which list; views of one do not show in another. */
  list: string
  /** Filters and order as they are, without what is open and where. */
  current: S
  presets: readonly (readonly [Preset, S])[]
  /** Reads a search that was kept, and drops what the page does not know. */
  reader: (raw: Record<string, unknown>) => S
  onChoose: (search: S) => void
}

/** Filters and order by name: those that everybody wants, and a person's own. */
export function Views<S extends object>({ list, current, presets, reader, onChoose }: Props<S>) {
  const t = useTexts(messages)
  const key = keptKey('views', useSession().actor, list)
  const own = parseKept(useKept(key), viewsIn)
  const [name, setName] = useState('')
  const [failed, setFailed] = useState(false)
  const store = (views: View[]) => setFailed(!keep(key, views.length > 0 ? views : null))
  const save = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() === '') return
    store(withView(own, { name: name.trim(), search: { ...current } as Record<string, unknown> }))
    setName('')
  }
  const entry = (label: string, search: S) => (
    <Button size="compact-sm" variant="default" className="choice-button" aria-pressed={same(search, current)} onClick={() => onChoose(search)}>
      {label}
    </Button>
  )
  return (
    <details className="fold views">
      <summary>{t('views')}</summary>
      <div className="stack-gap">
        <div className="actions">
          {presets.map(([preset, search]) => (
            <span key={preset}>{entry(t(preset), search)}</span>
          ))}
        </div>
        {own.length > 0 && (
          <ul className="actions plain-row" aria-label={t('own')}>
            {own.map((view) => (
              <li key={view.name} data-verbatim>
                {entry(view.name, reader(view.search))}
                <CloseButton size="md" aria-label={t('forget', { name: view.name })} onClick={() => store(own.filter((other) => other.name !== view.name))} />
              </li>
            ))}
          </ul>
        )}
        <form className="actions" onSubmit={save}>
          <TextInput aria-label={t('name')} placeholder={t('name')} size="xs" value={name} maxLength={MOST_NAME_CHARS} onChange={(event) => setName(event.currentTarget.value)} />
          <Button type="submit" size="compact-sm" variant="default" disabled={name.trim() === ''}>
            {t('save')}
          </Button>
        </form>
        <p className="note">{t('viewsNote')}</p>
        {failed && (
          <Alert color="red" role="alert">
            {t('notKept')}
          </Alert>
        )}
      </div>
    </details>
  )
}
