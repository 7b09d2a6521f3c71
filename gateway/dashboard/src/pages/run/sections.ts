/** The sections of a run, as they stand in addresses. */
export const SECTIONS = ['results', 'questions', 'calls', 'evidence', 'recipe', 'recovery'] as const
export type Section = (typeof SECTIONS)[number]
