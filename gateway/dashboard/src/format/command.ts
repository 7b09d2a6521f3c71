// The command line's words for what a page does, so that both stay one tool.

/** `text` as one word of a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** A command of this service: its address stands in it, so that it works from any folder. */
export function command(...words: string[]): string {
  return ['sr-bench', '--url', location.origin, ...words].map(quoted).join(' ')
}

/** A command that reads `document` from standard input. */
export function commandWith(document: string, ...words: string[]): string {
  return `${command(...words)} <<'SR_BENCH'\n${document}\nSR_BENCH`
}

/** The options that have a value: `--name value` for each. */
export function optionsOf(values: Record<string, string | undefined>): string[] {
  return Object.entries(values).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [`--${name}`, value]))
}
