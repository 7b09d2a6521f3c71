// What a person wrote about the questions of a run.

export interface Note {
  case_id: string
  target_id: string
  text: string
  /** Seconds since 1970. */
  at: number
}
/** By the number of the cell. */
export type Notes = Readonly<Record<string, Note>>

export const MOST_NOTE_CHARS = 4_000

/** The notes in anything. */
export function notesIn(raw: unknown): Notes {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return {}
  return Object.fromEntries(Object.entries(raw).filter((entry): entry is [string, Note] => /^\d+$/.test(entry[0]) && isNote(entry[1])))
}

function isNote(value: unknown): value is Note {
  if (typeof value !== 'object' || value === null) return false
  const { case_id, target_id, text, at } = value as Record<string, unknown>
  return typeof case_id === 'string' && typeof target_id === 'string' && typeof text === 'string' && text !== '' && typeof at === 'number'
}

/** The notes with one of them changed; an empty text forgets it. `null` when none is left. */
export function withNote(notes: Notes, cell: number, note: Note): Notes | null {
  const { [String(cell)]: _old, ...others } = notes
  const found = note.text.trim() === '' ? others : { ...others, [String(cell)]: note }
  return Object.keys(found).length > 0 ? found : null
}
