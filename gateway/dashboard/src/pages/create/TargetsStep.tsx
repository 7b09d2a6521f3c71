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

/** Who is asked. What the operator registered is shown and cannot be changed here. */
export function TargetsStep({ form, change, targets }: { form: Form; change: (part: Partial<Form>) => void; targets: Target[] }) {
  const t = useTexts(messages)
  const words = useTexts(common)
  const allowed = targets.filter((target) => (form.mode === 'live' || target.kind === 'mom') && !form.targets.includes(target.id))
  if (targets.length === 0) {
    return (
      <Section title={t('targets')}>
        <Empty title={t('noTargets')} />
      </Section>
    )
  }
  return (
    <Section title={t('targets')}>
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

function TargetCard({ target, form, onRemove }: { target: Target; form: Form; onRemove: () => void }) {
  const t = useTexts(messages)
  const fixed = fixedOf(target)
  const rest = Object.entries(fixed).filter(([name]) => !(SHOWN as readonly string[]).includes(name))
  const own: Record<string, unknown> = { ...form.sampling, max_tokens: form.limits.max_output_tokens }
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
