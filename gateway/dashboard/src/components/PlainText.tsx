import { Button } from '@mantine/core'
import { useState } from 'react'
import { bytes } from '../format/numbers'
import { directionOf, hides, visible } from '../format/visible'
import { defineMessages, useTexts } from '../i18n/messages'
import { CopyButton } from './CopyButton'

export const SHOWN_CHARS = 20_000
const messages = defineMessages(
  { cut: 'The first {shown} of {all} characters are shown.', all: 'Show all ({size})', hidden: 'Characters without a shape are written out, as ⟨U+202E⟩; a copy has them as they are.' },
  { cut: '显示了 {all} 个字符中的前 {shown} 个。', all: '全部显示（{size}）', hidden: '没有字形的字符写作 ⟨U+202E⟩ 的形式；复制时保持原样。' },
)

/** Text from a model, a file or an upstream. It is text: nothing in it is read as HTML, Markdown or an address. */
export function PlainText({ children, label }: { children: string; label: string }) {
  const t = useTexts(messages)
  const [whole, setWhole] = useState(false)
  const cut = !whole && children.length > SHOWN_CHARS
  const shown = cut ? children.slice(0, SHOWN_CHARS) : children
  return (
    <figure className="text-block" aria-label={label}>
      <pre className="plain" tabIndex={0} dir={directionOf(shown)}>
        {visible(shown)}
      </pre>
      <figcaption className="actions">
        <CopyButton text={children} />
        {hides(shown) && <span className="note">{t('hidden')}</span>}
        {cut && (
          <>
            <span className="note">{t('cut', { shown: SHOWN_CHARS, all: children.length })}</span>
            <Button size="compact-sm" variant="default" onClick={() => setWhole(true)}>
              {t('all', { size: bytes(children.length) ?? '' })}
            </Button>
          </>
        )}
      </figcaption>
    </figure>
  )
}
