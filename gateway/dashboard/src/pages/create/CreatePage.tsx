import { Page } from '../../components/Page'
import { common } from '../../i18n/common'
import { useTexts } from '../../i18n/messages'

export function CreatePage() {
  const t = useTexts(common)
  return <Page title={t('create')}>{null}</Page>
}
