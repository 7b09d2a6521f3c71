export function CallsTab() {
  return null
}
