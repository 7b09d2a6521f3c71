import { Button, Textarea } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Outcome } from '../api/types'
import { useSession } from '../app/session'
import { download } from '../files/download'
import { visible } from '../format/visible'
import { count } from '../format/numbers'
import { useTexts } from '../i18n/messages'
import { keep, keptKey, parseKept, useKept } from './kept'
import { messages } from './messages'
import { MOST_NOTE_CHARS, notesIn, withNote } from './notes'

function useNotes(runId: string) {
  const key = keptKey('notes', useSession().actor, runId)
  return { key, notes: parseKept(useKept(key), notesIn) }
}

/** What the reader writes about one answer; kept as it is typed. */
export function NoteBox({ runId, outcome }: { runId: string; outcome: Outcome }) {
  const t = useTexts(messages)
  const { key, notes } = useNotes(runId)
  const [failed, setFailed] = useState(false)
  const write = (text: string) => {
    const note = { case_id: outcome.case_id, target_id: outcome.target_id, text, at: Math.round(Date.now() / 1000) }
    setFailed(!keep(key, withNote(notes, outcome.cell, note)))
  }
  return (
    <Textarea
      label={t('note')}
      description={t('noteHelp')}
      error={failed && t('notKept')}
      rows={2}
      maxLength={MOST_NOTE_CHARS}
      value={notes[String(outcome.cell)]?.text ?? ''}
      onChange={(event) => write(event.currentTarget.value)}
    />
  )
}

/** All that the reader wrote about a run's answers, each beside a way to it. */
export function NotesOf({ runId }: { runId: string }) {
  const t = useTexts(messages)
  const { notes } = useNotes(runId)
  const found = Object.entries(notes)
  if (found.length === 0) return null
  return (
    <details className="fold">
      <summary>{t('notes', { n: count(found.length) ?? '' })}</summary>
      <ul className="plain-list">
        {found.map(([cell, note]) => (
          <li key={cell}>
            <Link to="/runs/$runId/questions" params={{ runId }} search={{ cell: Number(cell) }}>
              {visible(`${note.case_id} · ${note.target_id}`)}
            </Link>{' '}
            <span className="plain" data-verbatim>
              {visible(note.text)}
            </span>
          </li>
        ))}
      </ul>
      <Button size="compact-sm" variant="default" onClick={() => download(`${runId}-notes.json`, 'application/json', JSON.stringify({ run_id: runId, notes }, null, 2))}>
        {t('exportNotes')}
      </Button>
    </details>
  )
}
