import { Button } from '@mantine/core'
import { count } from '../format/numbers'
import { common } from '../i18n/common'
import { useTexts } from '../i18n/messages'

/** Pages of a list that is all here. Nothing is shown when one page holds it. */
export function Pager({ label, page, size, total, onPage }: { label: string; page: number; size: number; total: number; onPage: (page: number) => void }) {
  const t = useTexts(common)
  if (total <= size) return null
  const last = Math.ceil(total / size) - 1
  return (
    <nav className="pager" aria-label={label}>
      <span className="note">{t('showing', { from: count(page * size + 1) ?? '', to: count(Math.min(total, (page + 1) * size)) ?? '', total: count(total) ?? '' })}</span>
      <Button size="compact-sm" variant="default" disabled={page === 0} onClick={() => onPage(page - 1)}>
        {t('previous')}
      </Button>
      <Button size="compact-sm" variant="default" disabled={page >= last} onClick={() => onPage(page + 1)}>
        {t('next')}
      </Button>
    </nav>
  )
}
