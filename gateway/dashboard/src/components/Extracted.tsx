import { stringifyExact } from '../api/exactJson'
import { count } from '../format/numbers'
import { visible } from '../format/visible'
import { defineMessages, useTexts } from '../i18n/messages'
import { differing, type Grid } from './gridDiff'
import { gridsIn, GridView } from './Grids'
import { JsonBlock } from './JsonBlock'
import { PlainText } from './PlainText'

const messages = defineMessages(
  {
    extracted: 'Extracted answer',
    nothing: 'Nothing could be extracted from the answer.',
    same: 'Grid {n}: as that of {name}.',
    differ: 'Grid {n}: {cells} of {all} cells differ from that of {name}; they are crossed.',
    otherSize: 'Grid {n}: {rows} × {columns}, that of {name} is {otherRows} × {otherColumns}.',
    missing: 'Grid {n}: only in one of the answers.',
    raw: 'As digits',
  },
  {
    extracted: '提取的答案',
    nothing: '无法从回答中提取答案。',
    same: '网格 {n}：与 {name} 的相同。',
    differ: '网格 {n}：{all} 个单元格中有 {cells} 个与 {name} 的不同，已打叉。',
    otherSize: '网格 {n}：{rows} × {columns}，而 {name} 的是 {otherRows} × {otherColumns}。',
    missing: '网格 {n}：只有一个回答包含。',
    raw: '以数字显示',
  },
)
const SHORT_CHARS = 80

/** An answer to hold another one against, and whose it is. */
export interface Against {
  name: string
  answer: unknown
}

/** The answer that was read out of what a model said: grids drawn as grids, all else as text. */
export function Extracted({ answer, against }: { answer: unknown; against?: Against | undefined }) {
  const t = useTexts(messages)
  const grids = gridsIn(answer)
  if (grids) return <GridAnswer grids={grids} answer={answer} against={against} />
  if (answer === null || answer === undefined || answer === '') return <p className="note">{t('nothing')}</p>
  if (typeof answer === 'string' && answer.length <= SHORT_CHARS && !answer.includes('\n')) {
    return (
      <p className="plain mono" data-verbatim>
        {visible(answer)}
      </p>
    )
  }
  return <PlainText label={t('extracted')}>{typeof answer === 'string' ? answer : stringifyExact(answer, 2)}</PlainText>
}

function GridAnswer({ grids, answer, against }: { grids: Grid[]; answer: unknown; against: Against | undefined }) {
  const t = useTexts(messages)
  const others = against ? gridsIn(against.answer) : null
  return (
    <div className="stack-gap">
      {Array.from({ length: Math.max(grids.length, others?.length ?? 0) }, (_none, index) => {
        const [own, other] = [grids[index], others?.[index]]
        const cells = own && other && differing(own, other)
        return (
          <div className="stack-gap" key={index}>
            <div className="grid-pair">
              {own && <GridView grid={own} title={`${t('extracted')} ${index + 1}`} marked={cells ?? undefined} />}
              {other && against && <GridView grid={other} title={visible(against.name)} marked={cells ?? undefined} />}
            </div>
            {others && <p className="note">{compared(own, other, visible(against?.name ?? ''), index + 1)}</p>}
          </div>
        )
      })}
      <JsonBlock title={t('raw')} value={answer} />
    </div>
  )

  function compared(own: Grid | undefined, other: Grid | undefined, name: string, n: number): string {
    if (!own || !other) return t('missing', { n })
    const cells = differing(own, other)
    const [rows, columns] = [own.length, own[0]?.length ?? 0]
    if (cells === null) return t('otherSize', { n, name, rows, columns, otherRows: other.length, otherColumns: other[0]?.length ?? 0 })
    return cells.size === 0 ? t('same', { n, name }) : t('differ', { n, name, cells: count(cells.size) ?? '', all: count(rows * columns) ?? '' })
  }
}
