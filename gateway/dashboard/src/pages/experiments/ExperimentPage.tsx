import { visible } from '../../format/visible'
import { Alert, Button, Modal } from '@mantine/core'
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { remove } from '../../api/client'
import { isActive } from '../../api/types'
import { useSession } from '../../app/session'
import { CopyButton } from '../../components/CopyButton'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, LoadedPage } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { CellProgress } from '../../components/Progress'
import { StatusPill, TargetChip } from '../../components/Status'
import { command } from '../../format/command'
import { count } from '../../format/numbers'
import { moment } from '../../format/time'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { useProblem } from '../../i18n/problems'
import { AddRun } from './AddRun'
import { messages } from './messages'
import { NextStep } from './NextStep'
import { membersQuery, type Experiment, type Member } from './queries'
import { grouped, GROUPS } from './stage'

/** One experiment: how far it is, what comes next, and its runs by their part. */
export function ExperimentPage() {
  const t = useTexts(messages)
  const { experimentId } = useParams({ from: '/experiments/$experimentId' })
  const members = useInfiniteQuery(membersQuery(experimentId))
  return (
    <LoadedPage query={{ ...members, data: members.data?.pages }} what={t('whatOne')}>
      {(pages) => {
        const experiment = pages[0]!.experiment!
        const found = pages.flatMap((page) => page.members)
        return (
          <Page title={experiment.name} lead={t('created', { when: moment(experiment.created_at) ?? '' })} actions={<Actions experiment={experiment} />}>
            <Flow members={found} />
            <NextStep id={experiment.id} members={found} />
            <Section title={t('members')} note={t('runs', { n: count(experiment.run_count) ?? '' })}>
              <Members members={found} />
              {members.hasNextPage && (
                <Button variant="default" className="self-start" loading={members.isFetchingNextPage} onClick={() => void members.fetchNextPage()}>
                  {t('more')}
                </Button>
              )}
            </Section>
            <AddRun id={experiment.id} members={found} />
          </Page>
        )
      }}
    </LoadedPage>
  )
}

function Actions({ experiment }: { experiment: Experiment }) {
  const words = useTexts(common)
  const session = useSession()
  return (
    <>
      <CopyCommand text={command('experiment', 'show', experiment.id)} />
      <CopyButton text={location.href} label={words('copyLink')} />
      {session.can_write && <Removal experiment={experiment} />}
    </>
  )
}

function Removal({ experiment }: { experiment: Experiment }) {
  const t = useTexts(messages)
  const problem = useProblem()
  const words = useTexts(common)
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [asking, setAsking] = useState(false)
  const removal = useMutation({
    mutationFn: () => remove('/experiments/{experiment_id}', { path: { experiment_id: experiment.id } }),
    onSuccess: async () => {
      await navigate({ to: '/experiments', search: {} })
      queries.removeQueries({ queryKey: ['experiment', experiment.id] })
      void queries.invalidateQueries({ queryKey: ['experiments'] })
    },
  })
  return (
    <>
      <Button size="compact-sm" color="red" variant="light" onClick={() => setAsking(true)}>
        {t('remove')}
      </Button>
      <Modal opened={asking} onClose={() => setAsking(false)} title={t('removeSure')}>
        <div className="stack-gap">
          <p>{t('removeText', { n: count(experiment.run_count) ?? '' })}</p>
          {removal.error && (
            <Alert color="red" role="alert" title={t('removeFailed')}>
              {problem(removal.error)}
            </Alert>
          )}
          <div className="actions end">
            <Button variant="default" onClick={() => setAsking(false)}>
              {words('cancel')}
            </Button>
            <Button color="red" loading={removal.isPending} onClick={() => removal.mutate()}>
              {t('removeYes')}
            </Button>
          </div>
        </div>
      </Modal>
    </>
  )
}

/** Single models, starting recipe, versions, validation: how many runs of each there are. */
function Flow({ members }: { members: readonly Member[] }) {
  const t = useTexts(messages)
  const { main } = grouped(members)
  return (
    <Section title={t('flow')}>
      <ol className="flow-strip">
        {GROUPS.map((role) => {
          const active = main[role].filter(({ run }) => isActive(run.status)).length
          return (
            <li key={role} data-filled={main[role].length > 0 || undefined}>
              <strong>{t(`role_${role}`)}</strong>
              <span className="note">
                {t('saved', { n: main[role].length - active })}
                {active > 0 && ` · ${t('active', { n: active })}`}
              </span>
            </li>
          )
        })}
      </ol>
    </Section>
  )
}

function Members({ members }: { members: readonly Member[] }) {
  const t = useTexts(messages)
  if (members.length === 0) return <Empty title={t('noMembers')} />
  const { main, rest } = grouped(members)
  return (
    <>
      {GROUPS.filter((role) => main[role].length > 0).map((role) => (
        <div key={role}>
          <h3>{t(`role_${role}`)}</h3>
          <MemberList members={main[role]} label={t(`role_${role}`)} />
        </div>
      ))}
      {rest.length > 0 && (
        <details className="fold">
          <summary>{t('supporting', { n: rest.length })}</summary>
          <MemberList members={rest} label={t('members')} withRole />
        </details>
      )}
    </>
  )
}

function MemberList({ members, label, withRole }: { members: readonly Member[]; label: string; withRole?: boolean }) {
  const t = useTexts(messages)
  return (
    <ul className="member-list" aria-label={label}>
      {members.map(({ run, role, hypothesis }) => (
        <li key={run.id}>
          <div className="run-line">
            <Link to="/runs/$runId" params={{ runId: run.id }} className="row-link">
              {visible(run.manifest.name || run.id)}
            </Link>
            <StatusPill status={run.status} />
            {withRole && <span className="chip">{t(`role_${role}` as 'role_smoke')}</span>}
            {run.manifest.targets.map((target) => (
              <TargetChip key={target.id} model={target.model} kind={target.kind} />
            ))}
            <span className="soft">{moment(run.created_at)}</span>
          </div>
          {hypothesis && <p className="note plain">{t('hypothesis', { text: hypothesis })}</p>}
          <CellProgress progress={run.progress} />
        </li>
      ))}
    </ul>
  )
}
