import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { get } from '../api/client'
import { datasetsQuery } from '../api/queries'
import { common } from '../i18n/common'
import { defineMessages, useTexts } from '../i18n/messages'
import { PAGES } from './pages'

const messages = defineMessages(
  {
    title: 'Go to',
    hint: 'A page, or the name or id of a run, target or dataset',
    none: 'Nothing is called so.',
    run: 'Run',
    dataset: 'Dataset',
    page: 'Page',
    keys: 'Keys',
    keyGo: 'open this',
    keyWalk: 'next and previous row of a list',
    keyClose: 'close what is open beside a list',
  },
  {
    title: '前往',
    hint: '页面，或运行、目标、数据集的名称或标识',
    none: '没有匹配的内容。',
    run: '运行',
    dataset: '数据集',
    page: '页面',
    keys: '按键',
    keyGo: '打开此窗口',
    keyWalk: '列表的下一行和上一行',
    keyClose: '关闭列表旁打开的内容',
  },
)
const MOST = 8
const PAUSE_MS = 150

interface Place {
  key: string
  kind: 'page' | 'run' | 'dataset'
  name: string
  go: () => void
}

/** Everything by its name: pages, runs and datasets, and which keys there are. */
export function GoTo({ onClose }: { onClose: () => void }) {
  const t = useTexts(messages)
  const dialog = useRef<HTMLDialogElement>(null)
  const list = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const places = usePlaces(text, onClose)
  const chosen = Math.min(at, places.length - 1)
  useEffect(() => dialog.current?.showModal(), [])
  const press = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (event.key === 'Escape') onClose()
    else if (event.key === 'Enter') places[chosen]?.go()
    else if (step !== 0) setAt((chosen + step + places.length) % Math.max(1, places.length))
    else return
    // What is open behind this stays open.
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} className="go-to" aria-label={t('title')} onClose={onClose} onKeyDown={press}>
      <input
        autoFocus
        className="go-to-input"
        role="combobox"
        aria-label={t('title')}
        aria-expanded
        aria-controls={list}
        aria-activedescendant={places[chosen] && `${list}-${chosen}`}
        placeholder={t('hint')}
        value={text}
        maxLength={200}
        onChange={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
      />
      <ul id={list} role="listbox" aria-label={t('title')} className="go-to-list">
        {places.map((place, index) => (
          <li key={place.key} id={`${list}-${index}`} role="option" aria-selected={index === chosen} onClick={place.go}>
            <span className="wrap">{place.name}</span> <span className="soft">{t(place.kind)}</span>
          </li>
        ))}
      </ul>
      {places.length === 0 && (
        <p className="note" role="status">
          {t('none')}
        </p>
      )}
      <dl className="go-to-keys note" aria-label={t('keys')}>
        <dt>
          <kbd>Ctrl K</kbd> <kbd>?</kbd>
        </dt>
        <dd>{t('keyGo')}</dd>
        <dt>
          <kbd>j</kbd> <kbd>k</kbd>
        </dt>
        <dd>{t('keyWalk')}</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>{t('keyClose')}</dd>
      </dl>
    </dialog>
  )
}

/** What is called like `text`: pages and datasets at once, runs once nobody has typed for a moment. */
function usePlaces(text: string, onClose: () => void): Place[] {
  const words = useTexts(common)
  const navigate = useNavigate()
  const asked = useSettled(text.trim())
  const datasets = useQuery(datasetsQuery)
  const runs = useQuery({
    queryKey: ['go-to', asked],
    queryFn: ({ signal }) => get('/runs', { query: { ...(asked ? { q: asked } : {}), limit: MOST }, signal }),
    placeholderData: (before) => before,
  })
  const fits = (...names: string[]) => names.some((name) => name.toLowerCase().includes(text.trim().toLowerCase()))
  const place = (kind: Place['kind'], key: string, name: string, open: () => Promise<void>): Place => ({ kind, key, name, go: () => void open().then(onClose) })
  const pages = PAGES.filter((page) => fits(words(page.text)))
  return [
    ...pages.map((page) => place('page', page.to, words(page.text), () => navigate({ to: page.to }))),
    ...(runs.data?.runs ?? []).map((run) => place('run', run.id, run.manifest.name ? `${run.manifest.name} · ${run.id}` : run.id, () => navigate({ to: '/runs/$runId', params: { runId: run.id } }))),
    ...(datasets.data?.datasets ?? [])
      .filter((dataset) => text.trim() !== '' && fits(dataset.name, dataset.id))
      .slice(0, MOST)
      .map((dataset) => place('dataset', dataset.id, `${dataset.name} · ${dataset.id.slice(0, 8)}`, () => navigate({ to: '/datasets/$datasetId', params: { datasetId: dataset.id } }))),
  ]
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
