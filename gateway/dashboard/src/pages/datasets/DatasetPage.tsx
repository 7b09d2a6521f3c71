import { Page } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'

export function DatasetPage() {
  const t = useTexts(common)
  return <Page title={t('datasets')}>{null}</Page>
}
