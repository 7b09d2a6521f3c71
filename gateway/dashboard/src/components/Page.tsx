import { useEffect, type ReactNode } from 'react'
import { visible } from '../format/visible'

/** The frame of a page: its title (the document's, too, after the state of what it shows), what can be done, and the content. */
export function Page({ title, state, lead, actions, children }: { title: string; state?: string | undefined; lead?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${state ? `${state} · ` : ''}${visible(title)} · sr-bench`
  }, [title, state])
  return (
    <div className="page">
      <header className="page-head">
        <div>
          <h1>{visible(title)}</h1>
          {lead && <p className="lead">{lead}</p>}
        </div>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** A titled part of a page. */
export function Section({ title, note, actions, children, id }: { title: string; note?: ReactNode; actions?: ReactNode; children: ReactNode; id?: string }) {
  return (
    <section className="section" aria-label={title} id={id}>
      <div className="section-head">
        <h2>{title}</h2>
        {actions && <div className="actions">{actions}</div>}
      </div>
      {note && <p className="note">{note}</p>}
      {children}
    </section>
  )
}

/** A figure with its name. */
export function Tile({ label, children, note }: { label: string; children: ReactNode; note?: ReactNode }) {
  return (
    <div className="tile">
      <dt>{label}</dt>
      <dd>
        {children}
        {note && <span className="tile-note">{note}</span>}
      </dd>
    </div>
  )
}

export function Tiles({ children }: { children: ReactNode }) {
  return <dl className="tiles">{children}</dl>
}
