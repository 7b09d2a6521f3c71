export function EvidenceTab() {
  return null
}
