import { useQuery } from '@tanstack/react-query'
import { exactSum } from '../../api/exactJson'
import { reportQuery, spendQuery } from '../../api/queries'
import { isActive, type Report, type Run } from '../../api/types'
import { Tile, Tiles } from '../../components/Page'
import { CellProgress } from '../../components/Progress'
import { SpendBar } from '../../components/SpendBar'
import { useNow } from '../../components/useNow'
import { usePace } from '../../components/usePace'
import { Value } from '../../components/Value'
import { count, decimal } from '../../format/numbers'
import { ago, duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'

/** How far the run is, what it has cost, how fast it goes. */
export function RunTiles({ run, watched }: { run: Run; watched: boolean }) {
  const t = useTexts(messages)
  const active = isActive(run.status)
  const now = useNow(active ? 1_000 : 30_000)
  const spend = useQuery(spendQuery(run.id, active))
  // A report of a large running run is work: it is made for its end, and the sections that show one.
  const report = useQuery(reportQuery(run.id, active ? null : run.updated_at))
  const pace = usePace(run)
  const end = active ? now / 1000 : (run.updated_at ?? 0)
  const progress = run.progress
  return (
    <>
      <Tiles>
        <Tile label={t('cells')} note={progress && t('cellsNote', { completed: count(progress.completed) ?? '', failed: count(progress.failed) ?? '' })}>
          <CellProgress progress={progress} brief />
        </Tile>
        <Tile label={t('cost')}>
          <SpendBar spend={spend.data} />
        </Tile>
        {active ? (
          <>
            <Tile label={t('rate')}>
              <Value why={t('measuring')}>{pace && `${decimal(pace.rate, 1)}/s`}</Value>
            </Tile>
            <Tile label={t('left')}>
              <Value why={t('measuring')}>
                {pace && t('leftRange', { from: duration(Math.round(pace.earliest)) ?? '', to: duration(Math.round(pace.latest)) ?? '' })}
              </Value>
            </Tile>
          </>
        ) : (
          <Tile label={t('tokens')}>
            <Value why={t('tokensWhy')}>{report.data ? count(tokensOf(report.data)) : null}</Value>
          </Tile>
        )}
        <Tile label={t('elapsed')}>
          <Value>{duration(run.created_at === null ? null : Math.max(0, end - run.created_at))}</Value>
        </Tile>
      </Tiles>
      <p className="note" role="status">
        {active && `${watched ? t('live') : t('polling')} · `}
        {t('lastChange', { when: ago(run.updated_at, now) ?? '' })}
      </p>
    </>
  )
}

/** All four buckets of all targets; unknown when any of them is. */
function tokensOf(report: Report) {
  const usages = report.summary?.targets.map((target) => target.tokens) ?? []
  return exactSum(
    usages.flatMap((usage) => (usage ? [usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens] : [null])),
  )
}
