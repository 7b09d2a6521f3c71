import { useCallback } from 'react'
import { useTexts } from '../../i18n/messages'
import { messages } from './messages'
import { ROLES } from './search'

/** Gives what a call's role is called. A role that this page does not know is shown as it is. */
export function useRole(): (role: string | null) => string {
  const t = useTexts(messages)
  return useCallback(
    (role) => {
      const known = ROLES.find((name) => name === role)
      return known ? t(`role_${known}`) : (role ?? '')
    },
    [t],
  )
}
