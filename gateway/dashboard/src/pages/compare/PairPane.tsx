import { SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Suspense } from 'react'
import { get } from '../../api/client'
import { DetailPane, type Walk } from '../../components/DetailPane'
import { Extracted, type Against } from '../../components/Extracted'
import { lazily } from '../../components/lazily'
import { Empty, Loaded, Loading } from '../../components/Notices'
import { PlainText } from '../../components/PlainText'
import { Question, type Pick } from '../../components/Question'
import { Value } from '../../components/Value'
import { usd } from '../../format/numbers'
import { duration } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { pairQuery, type Pair, type PairFilter, type PairSide } from './queries'
import type { DIFFS } from './search'
import { SideMark } from './SideMark'

const AnswerDiff = lazily(() => import('./AnswerDiff').then((module) => module.AnswerDiff))
type Diff = (typeof DIFFS)[number]

interface Props {
  filter: PairFilter
  caseId: string
  walk: Walk
  diff: Diff
  onDiff: (diff: Diff | undefined) => void
  onClose: () => void
}

/** One question, both answers side by side, and what differs. Texts are read only now. */
export function PairPane({ filter, caseId, walk, diff, onDiff, onClose }: Props) {
  const t = useTexts(messages)
  const pair = useQuery(pairQuery(filter, caseId))
  const question = useQuery({
    queryKey: ['question', filter.baseline, caseId],
    queryFn: ({ signal }) => get('/runs/{run_id}/question', { path: { run_id: filter.baseline }, query: { case_id: caseId }, signal }),
    staleTime: Infinity,
  })
  return (
    <DetailPane title={caseId} walk={walk} onClose={onClose}>
      <Loaded query={question} what={t('whatPair')}>
        {(asked) => <Question question={asked} picks={picksOf(pair.data ?? null, filter)} />}
      </Loaded>
      <Loaded query={pair} what={t('whatPair')}>
        {(found) => (found ? <Answers pair={found} filter={filter} diff={diff} onDiff={onDiff} /> : <Empty title={t('gone')} />)}
      </Loaded>
    </DetailPane>
  )
}

function picksOf(pair: Pair | null, filter: PairFilter): Pick[] {
  const sides: [string, PairSide | null | undefined][] = [
    [filter.target, pair?.candidate],
    [filter.baselineTarget, pair?.baseline],
  ]
  return sides.flatMap(([name, side]) => (side && side.status === 'completed' ? [{ name, answer: side.answer, correct: side.correct }] : []))
}

function Answers({ pair, filter, diff, onDiff }: { pair: Pair; filter: PairFilter; diff: Diff; onDiff: (diff: Diff | undefined) => void }) {
  const t = useTexts(messages)
  const [before, after] = [pair.baseline?.final ?? null, pair.candidate?.final ?? null]
  return (
    <>
      <div className="sides">
        {pair.baseline && <Side runId={filter.baseline} target={filter.baselineTarget} caseId={pair.case_id} side={pair.baseline} />}
        {pair.candidate && <Side runId={filter.candidate} target={filter.target} caseId={pair.case_id} side={pair.candidate} against={pair.baseline ? { name: filter.baselineTarget, answer: pair.baseline.answer } : undefined} />}
      </div>
      {before !== null && after !== null && (
        <section className="stack-gap" aria-label={t('difference')}>
          <div className="section-head">
            <h3>{t('difference')}</h3>
            <SegmentedControl
              size="xs"
              aria-label={t('difference')}
              value={diff}
              onChange={(value) => onDiff(value === 'words' ? undefined : (value as Diff))}
              data={[
                { value: 'words', label: t('words') },
                { value: 'lines', label: t('lines') },
                { value: 'off', label: t('off') },
              ]}
            />
          </div>
          {diff !== 'off' && (
            <Suspense fallback={<Loading />}>
              <AnswerDiff before={before} after={after} by={diff} />
            </Suspense>
          )}
        </section>
      )}
    </>
  )
}

interface SideProps {
  runId: string
  target: string
  caseId: string
  side: PairSide
  against?: Against | undefined
}

function Side({ runId, target, caseId, side, against }: SideProps) {
  const t = useTexts(messages)
  return (
    <section className="side" aria-label={target}>
      <h3 className="wrap">{target}</h3>
      <p>
        <SideMark side={side} />
      </p>
      <dl className="facts">
        <Fact name={t('model')}>
          <Value>{side.model}</Value>
        </Fact>
        <Fact name={t('decision')}>
          <Value why={t('noDecision')}>{side.decision}</Value>
        </Fact>
        <Fact name={t('cost')}>
          <Value>{usd(side.cost_usd)}</Value>
        </Fact>
        <Fact name={t('time')}>
          <Value>{duration(side.latency_s)}</Value>
        </Fact>
        <Fact name={t('extracted')}>
          <Extracted answer={side.answer} against={against} />
        </Fact>
      </dl>
      {side.final !== null && <PlainText label={`${t('answer')}: ${target}`}>{side.final}</PlainText>}
      {side.call_id !== null && (
        <Link to="/runs/$runId/calls" params={{ runId }} search={{ call: side.call_id, case: caseId, target }}>
          {t('toCall')}
        </Link>
      )}
    </section>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
