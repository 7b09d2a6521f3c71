export function ResultsTab() {
  return null
}
