// Characters that have no shape of their own but change how others look: a text that has them must not look like one that
// has not.

// C0 and C1 controls but tab and line ends; marks, embeddings, overrides and isolates of direction; zero-width characters that
// join nothing; tag characters, which spell text that nobody sees.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** The text with such characters written out, as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`)
}

/** Whether a text has any. */
export function hides(text: string): boolean {
  return text.search(HIDDEN) >= 0
}

/** The direction that a text is to be laid out in. Finding it out costs seconds for a megabyte, so it is asked for only where it matters. */
export function directionOf(text: string): 'auto' | undefined {
  return RIGHT_TO_LEFT.test(text) ? 'auto' : undefined
}
