import { useEnd } from '../i18n/ends'

/** Why something ended as it did: in words, and as the stable reason that filters, logs and the command line use. */
export function Reason({ reason }: { reason: string }) {
  const words = useEnd()(reason)
  return (
    <>
      {words} {words !== reason && <code className="soft block">{reason}</code>}
    </>
  )
}
