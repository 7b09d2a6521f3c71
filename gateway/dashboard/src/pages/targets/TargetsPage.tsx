import { Page } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'

export function TargetsPage() {
  const t = useTexts(common)
  return <Page title={t('targets')}>{null}</Page>
}
