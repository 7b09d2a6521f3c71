import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useSession } from '../../app/session'
import { CopyCommand } from '../../components/CopyCommand'
import { Empty, Loaded } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { command } from '../../format/command'
import { count } from '../../format/numbers'
import { moment } from '../../format/time'
import { useTexts } from '../../i18n/messages'
import { StartError, Unsettled } from '../../submissions/Unsettled'
import { messages } from './messages'
import { experimentsQuery } from './queries'
import { creationOf, useCreation } from './submission'

/** All experiments, newest first, and a new one. */
export function ExperimentsPage() {
  const t = useTexts(messages)
  const { after } = useSearch({ from: '/experiments' })
  const session = useSession()
  const experiments = useQuery(experimentsQuery(after))
  return (
    <Page title={t('title')} lead={t('lead')}>
      <Creation key={session.actor} actor={session.actor ?? ''} />
      <Loaded query={experiments} what={t('what')}>
        {(page) => (
          <>
            {page.experiments.length === 0 ? (
              <Empty title={t('none')}>
                <p>{t('noneText')}</p>
              </Empty>
            ) : (
              <ul className="cards">
                {page.experiments.map((one) => (
                  <li key={one.id} className="card">
                    <Link to="/experiments/$experimentId" params={{ experimentId: one.id }} className="row-link">
                      {one.name}
                    </Link>
                    <p className="note">{t('runs', { n: count(one.run_count) ?? '' })}</p>
                    <p className="note">
                      {t('created', { when: moment(one.created_at) ?? '' })} · {t('changed', { when: moment(one.updated_at) ?? '' })}
                    </p>
                  </li>
                ))}
              </ul>
            )}
            {(after !== undefined || page.next_cursor) && (
              <nav className="pager" aria-label={t('title')}>
                {after !== undefined && (
                  <Link to="/experiments" search={{}} className="button-link">
                    {t('newest')}
                  </Link>
                )}
                {page.next_cursor && (
                  <Link to="/experiments" search={{ after: page.next_cursor }} className="button-link">
                    {t('older')}
                  </Link>
                )}
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Creation({ actor }: { actor: string }) {
  const t = useTexts(messages)
  const session = useSession()
  const [name, setName] = useState('')
  const { start, open } = useCreation(actor)
  if (open) {
    return (
      <Section title={t('reconcile')} note={t('reconcileText')}>
        <Unsettled submission={open} start={start} body={{ name: open.name, idempotency_key: open.idempotency_key }} facts={[[t('name'), open.name]]} button={t('reconcileButton')} />
      </Section>
    )
  }
  const ready = name.trim() !== '' && session.can_write
  return (
    <Section title={t('create')}>
      <form
        className="filters"
        onSubmit={(event) => {
          event.preventDefault()
          if (ready && !start.isPending) start.mutate(creationOf(actor, name))
        }}
      >
        <TextInput label={t('name')} value={name} maxLength={160} disabled={!session.can_write} onChange={(event) => setName(event.currentTarget.value)} className="filter-text" />
        <Button type="submit" disabled={!ready} loading={start.isPending}>
          {t('create')}
        </Button>
        {name.trim() !== '' && <CopyCommand text={command('experiment', 'create', name.trim())} />}
      </form>
      {!session.can_write && <p className="note">{t('needRight')}</p>}
      <StartError error={start.error} />
    </Section>
  )
}
