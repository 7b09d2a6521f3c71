import type { Outcome } from '../../api/types'
import { Tile, Tiles } from '../../components/Page'
import { Value } from '../../components/Value'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { routeOf } from './preview'

/** What a router would have done with a question, and what that rests on. There is no score: nothing was answered. */
export function RouteView({ outcome }: { outcome: Outcome }) {
  const t = useTexts(messages)
  const route = routeOf(outcome)
  if (!route) return <p className="note">{t('noRoute')}</p>
  const yesNo = (value: boolean | null) => (value === null ? null : value ? t('yes') : t('no'))
  const facts: [string, string | null][] = [
    [t('routeMethod'), route.method],
    [t('routeReason'), route.reason],
    [t('configHash'), route.configHash],
    [t('routeMode'), route.mode],
    [t('routeState'), route.stateDependent === null ? null : route.stateDependent ? t('stateYes') : t('stateNo')],
    [t('routeStateHash'), route.stateHash],
    [t('routeCaptured'), route.capturedAt],
    [t('routeSampled'), yesNo(route.sampled)],
    [t('routeSeed'), route.seed],
    [t('routeCaveat'), route.caveat],
  ]
  return (
    <>
      <h3>{t('routing')}</h3>
      <Tiles>
        <Tile label={t('decision')}>
          <Value why={t('notRecorded')}>{route.decision}</Value>
        </Tile>
        <Tile label={t('model')}>
          <Value why={t('notRecorded')}>{route.model}</Value>
        </Tile>
        <Tile label={t('selectionStatus')}>
          <Value why={t('notRecorded')}>{route.status}</Value>
        </Tile>
      </Tiles>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label} className="fact">
            <dt>{label}</dt>
            <dd className="plain">{value ?? <span className="soft">{t('notRecorded')}</span>}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}
