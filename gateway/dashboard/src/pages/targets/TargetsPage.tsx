import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../../api/client'
import { targetsQuery } from '../../api/queries'
import type { Target } from '../../api/types'
import { CopyCommand } from '../../components/CopyCommand'
import { JsonBlock } from '../../components/JsonBlock'
import { Empty, Loaded } from '../../components/Notices'
import { Page, Section } from '../../components/Page'
import { TargetChip } from '../../components/Status'
import { Scroll } from '../../components/Scroll'
import { Value } from '../../components/Value'
import { command } from '../../format/command'
import { count, usd } from '../../format/numbers'
import { moment } from '../../format/time'
import { common } from '../../i18n/common'
import { defineMessages, useTexts } from '../../i18n/messages'

const messages = defineMessages(
  {
    lead: 'What the operator registered. Endpoints, prices and parameters are changed with the command line only; keys never leave the executor.',
    what: 'the targets',
    whatLast: 'its last run',
    none: 'No target is registered',
    noneText: 'Register some with the command line: sr-bench target register --help',
    evaluate: 'Evaluate',
    endpoint: 'Endpoint',
    key: 'Key variable',
    noKey: 'none: no key is sent',
    calls: 'Most inner calls',
    configHash: 'Configured hash',
    noHash: 'No hash is asked for.',
    liveHash: 'Hash seen last',
    liveWhy: 'No answer of this target has acknowledged a hash yet.',
    same: 'the same',
    differs: 'differs from the configured one: its next run would fail',
    health: 'Last run',
    healthWhy: 'No run has used this target yet.',
    healthNote: '{completed} of {total} answered, {failed} failed',
    prices: 'Prices in US$ per million tokens',
    basis: 'As registered; frozen into each plan, so that later changes do not touch old runs.',
    model: 'Model',
    input: 'Input',
    cached: 'Cached input',
    write: 'Cache write',
    output: 'Output',
    noPrices: 'No prices: its cost is unknown, and plans must be quality only.',
    writeWhy: 'Not registered.',
    fixed: 'Fixed parameters',
    noFixed: 'None: the run’s own settings apply.',
    limits: 'Own limits',
    concurrency: '{n} at once',
    perMinute: '{n} requests a minute',
    tokensPerMinute: '{n} tokens a minute',
    noLimits: 'none',
  },
  {
    lead: '由运维人员登记的内容。端点、价格和参数只能用命令行修改；密钥不会离开执行器。',
    what: '目标列表',
    whatLast: '最近一次运行',
    none: '没有已登记的目标',
    noneText: '请用命令行登记：sr-bench target register --help',
    evaluate: '评测',
    endpoint: '端点',
    key: '密钥变量',
    noKey: '无：不发送密钥',
    calls: '最多内部调用',
    configHash: '配置的哈希',
    noHash: '不要求哈希。',
    liveHash: '最近所见哈希',
    liveWhy: '此目标的回答尚未确认过哈希。',
    same: '一致',
    differs: '与配置的不一致：下一次运行会失败',
    health: '最近一次运行',
    healthWhy: '还没有运行使用过此目标。',
    healthNote: '{total} 个中 {completed} 个有回答，{failed} 个失败',
    prices: '价格（美元 / 百万 token）',
    basis: '以登记为准；会冻结到每个计划中，因此之后的更改不影响旧运行。',
    model: '模型',
    input: '输入',
    cached: '缓存输入',
    write: '缓存写入',
    output: '输出',
    noPrices: '没有价格：费用未知，计划只能评估质量。',
    writeWhy: '未登记。',
    fixed: '固定参数',
    noFixed: '无：使用运行自身的设置。',
    limits: '自身限制',
    concurrency: '同时 {n} 个',
    perMinute: '每分钟 {n} 次请求',
    tokensPerMinute: '每分钟 {n} 个 token',
    noLimits: '无',
  },
)

/** The registry, to look at. */
export function TargetsPage() {
  const words = useTexts(common)
  const t = useTexts(messages)
  const targets = useQuery(targetsQuery)
  return (
    <Page title={words('targets')} lead={t('lead')} actions={<CopyCommand text={command('target', 'list')} />}>
      <Loaded query={targets} what={t('what')}>
        {({ targets: found }) =>
          found.length === 0 ? (
            <Empty title={t('none')}>
              <p>{t('noneText')}</p>
            </Empty>
          ) : (
            found.map((target) => <TargetView key={target.id} target={target} />)
          )
        }
      </Loaded>
    </Page>
  )
}

/** What the last run that used a target says of it. */
function useLastRun(target: Target) {
  return useQuery({
    queryKey: ['last-run-of', target.id],
    queryFn: async ({ signal }) => {
      const { runs } = await get('/runs', { query: { q: target.id, limit: 20 }, signal })
      const run = runs.find((item) => item.manifest.targets.some(({ id }) => id === target.id))
      if (!run) return null
      const path = { run_id: run.id }
      const [outcomes, answered, failed, calls] = await Promise.all([
        get('/runs/{run_id}/results', { path, query: { target_id: target.id, limit: 1 }, signal }),
        get('/runs/{run_id}/results', { path, query: { target_id: target.id, status: 'completed', limit: 1 }, signal }),
        get('/runs/{run_id}/results', { path, query: { target_id: target.id, status: 'failed', limit: 1 }, signal }),
        get('/runs/{run_id}/calls', { path, query: { target_id: target.id, role: 'subject', status: 'completed', descending: true, limit: 1 }, signal }),
      ])
      return { run, total: outcomes.total, completed: answered.total, failed: failed.total, hash: calls.calls[0]?.config_hash ?? null }
    },
    staleTime: 30_000,
  })
}

function TargetView({ target }: { target: Target }) {
  const t = useTexts(messages)
  const last = useLastRun(target)
  const hash = last.data?.hash ?? null
  const limits = [
    target.max_concurrency ? t('concurrency', { n: count(target.max_concurrency) ?? '' }) : null,
    target.requests_per_minute ? t('perMinute', { n: count(target.requests_per_minute) ?? '' }) : null,
    target.tokens_per_minute ? t('tokensPerMinute', { n: count(target.tokens_per_minute) ?? '' }) : null,
  ].filter((text) => text !== null)
  return (
    <Section
      title={target.id}
      actions={
        <>
          <TargetChip model={target.model} kind={target.kind} />
          <Link to="/create" search={{ target: [target.id] }} className="button-link">
            {t('evaluate')}
          </Link>
        </>
      }
    >
      <dl className="facts">
        <dt>{t('endpoint')}</dt>
        <dd className="mono">{target.base_url}</dd>
        <dt>{t('key')}</dt>
        <dd className="mono">{target.api_key_env || <span className="soft">{t('noKey')}</span>}</dd>
        {target.kind === 'mom' && (
          <>
            <dt>{t('calls')}</dt>
            <dd>
              <Value>{count(target.max_inference_calls)}</Value>
            </dd>
            <dt>{t('configHash')}</dt>
            <dd className="mono">
              <Value why={t('noHash')}>{target.config_hash}</Value>
            </dd>
            <dt>{t('liveHash')}</dt>
            <dd>
              <Value why={t('liveWhy')}>{hash}</Value>{' '}
              {hash && target.config_hash && <span className={hash === target.config_hash ? 'good' : 'bad'}>{hash === target.config_hash ? t('same') : t('differs')}</span>}
            </dd>
          </>
        )}
        <dt>{t('limits')}</dt>
        <dd>{limits.length > 0 ? limits.join(' · ') : <span className="soft">{t('noLimits')}</span>}</dd>
        <dt>{t('health')}</dt>
        <dd>
          <Loaded query={{ ...last, data: last.data }} what={t('whatLast')}>
            {(found) =>
              found === null ? (
                <Value why={t('healthWhy')}>{null}</Value>
              ) : (
                <>
                  <Link to="/runs/$runId" params={{ runId: found.run.id }}>
                    {moment(found.run.created_at)}
                  </Link>{' '}
                  {t('healthNote', { completed: count(found.completed) ?? '', total: count(found.total) ?? '', failed: count(found.failed) ?? '' })}
                </>
              )
            }
          </Loaded>
        </dd>
      </dl>
      <Prices target={target} />
      {Object.keys(target.request_params ?? {}).length > 0 ? <JsonBlock title={t('fixed')} value={target.request_params} /> : <p className="note">{`${t('fixed')}: ${t('noFixed')}`}</p>}
    </Section>
  )
}

function Prices({ target }: { target: Target }) {
  const t = useTexts(messages)
  const prices = Object.entries(target.prices ?? {})
  if (prices.length === 0) return <p className="note">{t('noPrices')}</p>
  return (
    <Scroll label={t('prices')}>
      <table className="table">
        <caption className="note">
          {t('prices')}. {t('basis')}
        </caption>
        <thead>
          <tr>
            <th scope="col">{t('model')}</th>
            {([t('input'), t('cached'), t('write'), t('output')] as const).map((label) => (
              <th key={label} scope="col" className="num">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {prices.map(([model, price]) => (
            <tr key={model}>
              <th scope="row">{model}</th>
              {[price.input, price.cached_input, price.cache_write, price.output].map((value, index) => (
                <td key={index} className="num">
                  <Value why={t('writeWhy')}>{usd(value)}</Value>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
