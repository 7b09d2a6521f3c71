import { useState } from 'react'
import { stringifyExact } from '../api/exactJson'
import { PlainText } from './PlainText'

/** A document, folded. It becomes text only when it is opened. */
export function JsonBlock({ title, value }: { title: string; value: unknown }) {
  const [open, setOpen] = useState(false)
  return (
    <details className="fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && <PlainText label={title}>{stringifyExact(value, 2)}</PlainText>}
    </details>
  )
}
