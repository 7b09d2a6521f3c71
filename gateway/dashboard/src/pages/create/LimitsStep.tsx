import { Alert, Button, NumberInput, Select, TextInput } from '@mantine/core'
import { stringifyExact } from '../../api/exactJson'
import type { Target } from '../../api/types'
import { Section } from '../../components/Page'
import { useTexts } from '../../i18n/messages'
import { fixedOf, isPriced, type Form, type LimitName, type SamplingName } from './form'
import { messages } from './messages'

const FIRST: LimitName[] = ['max_cost_usd', 'max_run_seconds', 'max_output_tokens', 'concurrency']
const MORE: LimitName[] = ['total_timeout_s', 'idle_timeout_s', 'case_timeout_s', 'max_calls_per_case']
const WHOLE: ReadonlySet<LimitName> = new Set(['max_output_tokens', 'concurrency', 'max_calls_per_case'])
const STEPS: Record<SamplingName, { min?: number; max?: number; step: number }> = {
  temperature: { min: 0, max: 2, step: 0.1 },
  top_p: { min: 0, max: 1, step: 0.05 },
  seed: { step: 1 },
}

interface Props {
  form: Form
  change: (part: Partial<Form>) => void
  targets: Target[]
}

/** What it may cost and take, and how answers are sampled. */
export function LimitsStep({ form, change, targets }: Props) {
  const t = useTexts(messages)
  const chosen = targets.filter((target) => form.targets.includes(target.id))
  const unpriced = form.mode === 'live' && form.costPolicy === 'require_priced' ? chosen.filter((target) => !isPriced(target)) : []
  return (
    <Section title={t('limits')}>
      <div className="fields">
        {FIRST.map((name) => (
          <Limit key={name} name={name} form={form} change={change} />
        ))}
      </div>
      {unpriced.length > 0 && (
        <Alert color="yellow" variant="light" role="note">
          <div className="notice-row">
            <span>{t('missingPrices', { names: unpriced.map((target) => target.model).join(', ') })}</span>
            <Button size="compact-sm" variant="default" onClick={() => change({ costPolicy: 'capability_only' })}>
              {t('useQualityOnly')}
            </Button>
          </div>
        </Alert>
      )}
      <details className="fold">
        <summary>{t('advanced')}</summary>
        <div className="fields">
          {(Object.keys(STEPS) as SamplingName[]).map((name) => (
            <Sampling key={name} name={name} form={form} change={change} targets={chosen} />
          ))}
          {MORE.map((name) => (
            <Limit key={name} name={name} form={form} change={change} />
          ))}
          <Select
            label={t('costPolicy')}
            allowDeselect={false}
            data={(['require_priced', 'capability_only'] as const).map((value) => ({ value, label: t(value) }))}
            value={form.costPolicy}
            onChange={(value) => change({ costPolicy: (value as Form['costPolicy'] | null) ?? 'require_priced' })}
          />
        </div>
      </details>
      {form.mode === 'preview' && (
        <fieldset className="bare">
          <legend>{t('previewContext')}</legend>
          <div className="fields">
            <TextInput label={t('sessionId')} description={t('optional')} value={form.sessionId} maxLength={200} onChange={(event) => change({ sessionId: event.currentTarget.value })} />
            <TextInput label={t('conversationId')} description={t('optional')} value={form.conversationId} maxLength={200} onChange={(event) => change({ conversationId: event.currentTarget.value })} />
            <NumberInput label={t('previewSeed')} description={t('optional')} allowDecimal={false} value={form.previewSeed ?? ''} onChange={(value) => change({ previewSeed: numberOf(value) })} />
          </div>
        </fieldset>
      )}
    </Section>
  )
}

function numberOf(value: string | number): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function Limit({ name, form, change }: { name: LimitName; form: Form; change: Props['change'] }) {
  const t = useTexts(messages)
  const off = name === 'max_cost_usd' && form.costPolicy === 'capability_only'
  return (
    <NumberInput
      label={t(name)}
      min={0}
      allowNegative={false}
      allowDecimal={!WHOLE.has(name)}
      disabled={off}
      placeholder={off ? t('notApplied') : undefined}
      // The number is kept, and goes into the manifest, for whoever turns accounting on again.
      value={off ? '' : (form.limits[name] ?? '')}
      onChange={(value) => !off && change({ limits: { ...form.limits, [name]: numberOf(value) } })}
    />
  )
}

function Sampling({ name, form, change, targets }: { name: SamplingName; form: Form; change: Props['change']; targets: Target[] }) {
  const t = useTexts(messages)
  const fixed = targets.filter((target) => name in fixedOf(target))
  const values = [...new Set(fixed.map((target) => stringifyExact(fixedOf(target)[name])))]
  const all = targets.length > 0 && fixed.length === targets.length
  const help = all
    ? t('fixedByAll', { value: values.length === 1 ? (values[0] ?? '') : t('varies') })
    : fixed.length > 0
      ? t('fixedBySome', { n: targets.length - fixed.length, all: targets.length })
      : undefined
  return (
    <NumberInput
      label={t(name)}
      description={help}
      {...STEPS[name]}
      allowDecimal={name !== 'seed'}
      disabled={all}
      value={all ? '' : (form.sampling[name] ?? '')}
      placeholder={all ? (values.length === 1 ? values[0] : t('varies')) : t('providerDefault')}
      onChange={(value) => !all && change({ sampling: { ...form.sampling, [name]: numberOf(value) } })}
    />
  )
}
