// Short names for the API document's schemas.
import type { Answer } from './client'
import type { components } from './schema'

type Schemas = components['schemas']

export type Run = Schemas['Run']
export type RunRow = Schemas['RunRow']
export type RunEvent = Schemas['RunEvent']
export type Progress = Schemas['Progress']
export type Spend = Schemas['Spend']
export type Report = Schemas['Report']
export type Metrics = Schemas['Metrics']
export type Outcome = Schemas['Outcome']
export type Call = Schemas['Call']
export type CallRow = Schemas['CallRow']
export type Catalog = Schemas['Catalog']
export type Benchmark = Schemas['Benchmark']
export type Dataset = Schemas['Dataset']
export type DatasetDetail = Schemas['DatasetDetail']
export type DatasetCase = Schemas['DatasetCase']
export type DatasetSelection = Schemas['DatasetSelection']
export type Preparation = Schemas['DatasetPreparation']
export type Target = Schemas['ManifestTarget']
export type TokenUsage = Schemas['TokenUsage']
export type CheckedPlan = Answer<'/plans', 'post'>

/** Whether a run with this status may still change. */
export function isActive(status: string): boolean {
  return status === 'queued' || status === 'running'
}
