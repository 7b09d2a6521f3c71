import { Button, Select, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** A text that filters once nobody has typed for a moment. */
export function SearchBox({ value, onChange }: { value: string | undefined; onChange: (value: string | undefined) => void }) {
  const t = useTexts(messages)
  const [typed, setTyped] = useState(value ?? '')
  useEffect(() => setTyped(value ?? ''), [value])
  useEffect(() => {
    if (typed === (value ?? '')) return undefined
    const timer = setTimeout(() => onChange(typed || undefined), 250)
    return () => clearTimeout(timer)
  })
  return <TextInput label={t('search')} value={typed} maxLength={200} onChange={(event) => setTyped(event.currentTarget.value)} className="filter-text" />
}

/** One of a few values, or all. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T | undefined
  options: readonly { value: T; label: string }[]
  onChange: (value: T | undefined) => void
}) {
  const t = useTexts(messages)
  // A value from a link that is not among the options is shown as it is: a filter must never act unseen.
  const known = value === undefined || options.some((option) => option.value === value)
  const data = known ? [...options] : [...options, { value, label: value }]
  return (
    <Select
      label={label}
      placeholder={t('all')}
      clearable
      searchable={data.length > 8}
      data={data}
      value={value ?? null}
      onChange={(chosen) => onChange((chosen as T | null) ?? undefined)}
      className="filter-choice"
    />
  )
}

export function ClearFilters({ onClear }: { onClear: () => void }) {
  const t = useTexts(messages)
  return (
    <Button variant="default" onClick={onClear}>
      {t('clear')}
    </Button>
  )
}
