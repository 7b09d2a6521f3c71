// Files that are made here or asked for with a body, handed to the browser to be saved.
import { postFile } from '../api/client'

export function download(name: string, type: string, content: string | Blob): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has taken the file by the next turn; keeping the address would keep the bytes.
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** Asks for a file and saves it. Throws `ApiError` with the service's sentence when it refuses. */
export async function fetchFile(path: string, name: string): Promise<void> {
  const file = await postFile(path)
  download(name, file.type, file)
}
