import { Page } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'

export function ComparePage() {
  const t = useTexts(common)
  return <Page title={t('compare')}>{null}</Page>
}
