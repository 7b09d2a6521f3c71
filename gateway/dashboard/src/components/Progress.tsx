import { Progress as Bar } from '@mantine/core'
import type { Progress } from '../api/types'
import { count } from '../format/numbers'
import { defineMessages, useTexts } from '../i18n/messages'

const messages = defineMessages(
  { of: '{done} of {total}', failed: '{n} failed', label: 'Progress: {done} of {total} cells ended, {failed} of them failed' },
  { of: '{done} / {total}', failed: '{n} 个失败', label: '进度：{total} 个单元中 {done} 个已结束，其中 {failed} 个失败' },
)

/** How many planned cells have ended, and, unless `brief`, how many of those without an answer. The denominator is always the plan's. */
export function CellProgress({ progress, brief = false }: { progress: Progress | null | undefined; brief?: boolean }) {
  const t = useTexts(messages)
  if (!progress) return null
  const { total, completed, failed } = progress
  const share = (part: number) => (total > 0 ? (100 * part) / total : 0)
  const words = { done: count(completed + failed) ?? '', total: count(total) ?? '', failed: count(failed) ?? '' }
  return (
    <div className="progress">
      <Bar.Root size="sm" aria-hidden>
        <Bar.Section value={share(completed)} color="indigo" withAria={false} />
        <Bar.Section value={share(failed)} color="red" withAria={false} />
      </Bar.Root>
      <span className="figure" role="progressbar" aria-valuemin={0} aria-valuemax={total} aria-valuenow={completed + failed} aria-label={t('label', words)}>
        {t('of', words)}
        {failed > 0 && !brief && <span className="bad"> · {t('failed', { n: words.failed })}</span>}
      </span>
    </div>
  )
}
