import { Link } from '@tanstack/react-router'
import { isActive } from '../../api/types'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import type { Member } from './queries'
import { grouped, referenceOf, stageOf } from './stage'

/** What to do next, and the way to it. */
export function NextStep({ id, members }: { id: string; members: readonly Member[] }) {
  const t = useTexts(messages)
  const stage = stageOf(members)
  return (
    <Section title={t('next')} note={t(`next_${stage}`)}>
      <div className="actions">
        <Ways id={id} members={members} />
      </div>
    </Section>
  )
}

function Ways({ id, members }: { id: string; members: readonly Member[] }) {
  const t = useTexts(messages)
  const stage = stageOf(members)
  const baseline = referenceOf(members)?.run_id
  const active = members.find(({ run }) => isActive(run.status))
  if (stage === 'active' && active) {
    return (
      <Link to="/runs/$runId" params={{ runId: active.run_id }} className="button-link primary">
        {t('follow')}
      </Link>
    )
  }
  if (baseline === undefined) {
    return (
      <Link to="/create" search={{ experiment: id, role: 'baseline' }} className="button-link primary">
        {t('startSingles')}
      </Link>
    )
  }
  const { main } = grouped(members)
  const candidates = [...main.initial, ...main.candidate].map((member) => member.run_id)
  return (
    <>
      {candidates.length > 0 && (
        <Link to="/compare" search={{ baseline, candidate: candidates, experiment: id }} className={stage === 'review' ? 'button-link primary' : 'button-link'}>
          {t('review')}
        </Link>
      )}
      <Link to="/create" search={{ baseline, experiment: id, role: stage === 'initial' ? 'initial' : 'candidate' }} className={stage === 'review' ? 'button-link' : 'button-link primary'}>
        {stage === 'initial' ? t('testRecipe') : t('nextVersion')}
      </Link>
      <Link to="/create" search={{ baseline, experiment: id, role: 'preview', mode: 'preview' }} className="button-link">
        {t('previewRecipe')}
      </Link>
      {stage === 'review' && (
        <Link to="/create" search={{ profile: 'standard', experiment: id, role: 'validation' }} className="button-link">
          {t('validate')}
        </Link>
      )}
    </>
  )
}
