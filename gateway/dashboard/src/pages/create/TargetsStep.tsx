import { Button, Select } from '@mantine/core'
import { stringifyExact } from '../../api/exactJson'
import type { Target } from '../../api/types'
import { Empty } from '../../components/Notices'
import { Section } from '../../components/Page'
import { Pill, TargetChip } from '../../components/Status'
import { Value } from '../../components/Value'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'
import { fixedOf, isPriced, type Form } from './form'
import { messages } from './messages'

const SHOWN = ['max_tokens', 'temperature', 'top_p', 'seed', 'reasoning_effort'] as const

/** What of a form the targets depend on. Without limits and sampling the plan's own hold. */
type Asked = Pick<Form, 'mode' | 'targets'> & Partial<Pick<Form, 'limits' | 'sampling'>> & { onlyRouters?: boolean }

/** Who is asked. What the operator registered is shown and cannot be changed here. */
export function TargetsStep({ form, change, targets, title }: { form: Asked; change: (part: { targets: string[] }) => void; targets: Target[]; title?: string }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const routers = form.mode === 'preview' || form.onlyRouters
  const allowed = targets.filter((target) => (!routers || target.kind === 'mom') && !form.targets.includes(target.id))
  if (targets.length === 0) {
    return (
      <Section title={title ?? t('targets')}>
        <Empty title={t('noTargets')} />
      </Section>
    )
  }
  return (
    <Section title={title ?? t('targets')}>
      <Select
        label={t('addTarget')}
        searchable
        data={allowed.map((target) => ({ value: target.id, label: `${target.model} · ${words(target.kind === 'mom' ? 'kind_mom' : 'kind_single')}${target.id === target.model ? '' : ` · ${target.id}`}` }))}
        value={null}
        onChange={(id) => id && change({ targets: [...form.targets, id] })}
        className="filter-wide"
      />
      <ul className="cards">
        {targets
          .filter((target) => form.targets.includes(target.id))
          .map((target) => (
            <TargetCard key={target.id} target={target} form={form} onRemove={() => change({ targets: form.targets.filter((id) => id !== target.id) })} />
          ))}
      </ul>
    </Section>
  )
}

function TargetCard({ target, form, onRemove }: { target: Target; form: Asked; onRemove: () => void }) {
  const t = useTexts(messages)
  const fixed = fixedOf(target)
  const rest = Object.entries(fixed).filter(([name]) => !(SHOWN as readonly string[]).includes(name))
  const own: Record<string, unknown> = { ...form.sampling, ...(form.limits ? { max_tokens: form.limits.max_output_tokens } : {}) }
  return (
    <li className="card">
      <TargetChip model={target.model} kind={target.kind} />
      <details className="fold">
        <summary>{t('connection')}</summary>
        <dl className="facts">
          <dt>{t('endpoint')}</dt>
          <dd className="mono">{target.base_url}</dd>
          <dt>{t('configHash')}</dt>
          <dd className="mono">
            <Value>{target.config_hash}</Value>
          </dd>
        </dl>
      </details>
      <details className="fold">
        <summary>{t('profileOf')}</summary>
        <dl className="facts">
          {SHOWN.map((name) => (
            <div key={name} className="fact">
              <dt className="mono">{name}</dt>
              <dd>
                {name in fixed ? (
                  <>
                    {fixed[name] === null ? t('providerDefault') : stringifyExact(fixed[name])}{' '}
                    <Pill tone="quiet" title={t('fixedNote')}>
                      {t('fixed')}
                    </Pill>
                  </>
                ) : own[name] === null || own[name] === undefined ? (
                  <span className="soft">{t('providerDefault')}</span>
                ) : (
                  stringifyExact(own[name])
                )}
              </dd>
            </div>
          ))}
        </dl>
        {rest.length > 0 && (
          <>
            <h4>{t('otherFixed')}</h4>
            <dl className="facts">
              {rest.map(([name, value]) => (
                <div key={name} className="fact">
                  <dt>{name.replaceAll('_', ' ')}</dt>
                  <dd className="mono">{stringifyExact(value)}</dd>
                </div>
              ))}
            </dl>
          </>
        )}
      </details>
      <p className="note">
        {isPriced(target) ? t('priced') : t('unpricedTarget')} · {t('keysStay')} {target.capture_recipe && t('capture')}
      </p>
      <Button size="compact-sm" variant="default" className="self-start" onClick={onRemove}>
        {t('remove', { name: target.model })}
      </Button>
    </li>
  )
}
