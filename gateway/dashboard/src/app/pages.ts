/** The pages that stand in the bar, by the word for each. */
export const PAGES = [
  { to: '/runs', text: 'runs' },
  { to: '/create', text: 'create' },
  { to: '/experiments', text: 'experiments' },
  { to: '/compare', text: 'compare' },
  { to: '/datasets', text: 'datasets' },
  { to: '/targets', text: 'targets' },
] as const
