import { Section } from '../../components/Page'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { count, percent, points, usd } from '../../format/numbers'
import { sentence, useTexts } from '../../i18n/messages'
import { useSayings, type Saying } from '../../i18n/sentences'
import { messages } from './messages'
import type { Comparison } from './queries'

type Nulls = NonNullable<Comparison['null_routers']>
type Policy = NonNullable<Nulls['router']>
type Parts = NonNullable<NonNullable<Comparison['regret']>['total']>
const PARTS = ['correct', 'pool_limit', 'selection_error', 'execution_failure', 'unattributed'] as const

/** A router beside routers that know nothing, and where its wrong answers come from. */
export function Routers({ row, name, sayings }: { row: Comparison; name: string; sayings: readonly Saying[] }) {
  const t = useTexts(messages)
  const translated = useSayings(sayings)
  if (!row.null_routers) {
    return (
      <Section title={t('routers')}>
        <p className="note">{t('singleOnly')}</p>
      </Section>
    )
  }
  return (
    <Section title={t('routers')} note={`${name}: ${t('routersNote')}`}>
      <Policies nulls={row.null_routers} translated={translated} />
      {row.regret?.total && <Regret total={row.regret.total} decisions={row.regret.decisions} />}
      <ul className="sentences note">
        {row.null_routers.notes.map((note) => (
          <li key={note}>{sentence(translated(note))}</li>
        ))}
      </ul>
    </Section>
  )
}

function Policies({ nulls, translated }: { nulls: Nulls; translated: (sentence: string) => string }) {
  const t = useTexts(messages)
  const rows: [string, Policy][] = [
    ...named(t('router'), nulls.router),
    ...nulls.always.flatMap((policy) => named(t('always', { name: policy.name }), policy)),
    ...named(t('mix'), nulls.static_mix),
    ...named(t('oracle'), nulls.oracle),
  ]
  const closed = gapClosed(nulls)
  return (
    <>
      <Scroll label={t('routers')}>
        <table className="table" aria-label={t('routers')}>
          <thead>
            <tr>
              <th scope="col">{t('policy')}</th>
              <th scope="col" className="num">{t('quality')}</th>
              <th scope="col" className="num">{t('cost')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([label, policy], index) => (
              <tr key={label} data-self={index === 0 || undefined}>
                <th scope="row">
                  {label}
                  {Object.keys(policy.shares).length > 0 && <span className="soft block">{sharesOf(policy)}</span>}
                </th>
                <td className="num">{percent(policy.quality)}</td>
                <td className="num">
                  <Value>{usd(policy.cost_usd)}</Value>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {nulls.static_mix_reason && <p className="note">{t('noMix', { reason: translated(nulls.static_mix_reason) })}</p>}
      {closed && <p>{t(closed.text, closed)}</p>}
      {nulls.split && (
        <p className="note">
          {t('split', {
            observed: percent(nulls.split.observed_quality) ?? '',
            shuffled: percent(nulls.split.shuffled_quality) ?? '',
            p: percent(nulls.split.permutation_p) ?? '',
            n: count(nulls.split.permutations) ?? '',
          })}
        </p>
      )}
    </>
  )
}

function named(label: string, policy: Policy | null): [string, Policy][] {
  return policy === null ? [] : [[label, policy]]
}

function sharesOf(policy: Policy): string {
  return Object.entries(policy.shares)
    .sort(([, one], [, other]) => other - one)
    .map(([model, share]) => `${model} ${percent(share) ?? ''}`)
    .join(', ')
}

interface Gap extends Record<string, string> {
  name: string
  share: string
  gap: string
  points: string
  text: 'gap' | 'gapNone' | 'gapLost' | 'gapLostPoints'
}
const LEAST_GAP = 0.01

/** How much of the way from the best single model to the oracle the router goes; negative when it falls behind. */
function gapClosed(nulls: Nulls): Gap | null {
  const best = nulls.always.reduce<Policy | null>((found, policy) => (found && found.quality >= policy.quality ? found : policy), null)
  if (!best || !nulls.router || !nulls.oracle || nulls.oracle.quality <= best.quality) return null
  const gap = nulls.oracle.quality - best.quality
  const closed = nulls.router.quality - best.quality
  const share = closed / gap
  const shown = { name: best.name, share: percent(Math.abs(share), 0) ?? '', gap: points(gap)?.replace('+', '') ?? '', points: points(Math.abs(closed))?.replace('+', '') ?? '' }
  if (share > 0.005) return { ...shown, text: 'gap' }
  if (Math.abs(share) <= 0.005) return { ...shown, text: 'gapNone' }
  // Where hardly anything is to be gained, or more is lost than there is to gain, a share says nothing; points do.
  return { ...shown, text: gap < LEAST_GAP || share < -1 ? 'gapLostPoints' : 'gapLost' }
}

/** The parts as one bar a decision: its length is the decision's weight. */
function Regret({ total, decisions }: { total: Parts; decisions: Parts[] }) {
  const t = useTexts(messages)
  const used = PARTS.filter((part) => [total, ...decisions].some((row) => row[part] > 0))
  return (
    <>
      <h3>{t('regret')}</h3>
      <div className="legend">
        {used.map((part) => (
          <span key={part}>
            <span className={`swatch ${part}`} aria-hidden />
            {t(`regret_${part}`)}
          </span>
        ))}
      </div>
      <Scroll label={t('regret')}>
        <table className="table" aria-label={t('regret')}>
          <thead>
            <tr>
              <th scope="col">{t('decision')}</th>
              <th scope="col" className="num">{t('cases')}</th>
              {used.map((part) => (
                <th scope="col" className="num" key={part}>{t(`regret_${part}`)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            <RegretRow name={t('allDecisions')} parts={total} used={used} />
            {decisions.map((parts) => (
              <RegretRow key={parts.decision ?? ''} name={parts.decision ?? t('noDecision')} parts={parts} used={used} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  )
}

function RegretRow({ name, parts, used }: { name: string; parts: Parts; used: readonly (typeof PARTS)[number][] }) {
  return (
    <tr>
      <th scope="row">
        {name}
        <span className="regret-bar" aria-hidden>
          {used.map((part) => (
            <span key={part} className={part} style={{ width: `${100 * parts[part]}%` }} />
          ))}
        </span>
      </th>
      <td className="num">{count(parts.cases)}</td>
      {used.map((part) => (
        <td className="num" key={part}>{percent(parts[part])}</td>
      ))}
    </tr>
  )
}
