/** Cuts in a text: parts of it replaced, all at once, by their places in the original. */
import type { Comment } from "acorn";

/** One part replaced. */
export interface Cut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The text with its cuts made; they do not overlap. */
export function splice(text: string, cuts: readonly Cut[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const cut of [...cuts].sort((a, b) => a.start - b.start)) {
    parts.push(text.slice(at, cut.start), cut.text);
    at = cut.end;
  }
  return parts.join("") + text.slice(at);
}

/**
 * Cuts for the comments in which the bundler names its modules: they hold paths of the machine that bundled, so
 * that one app would have another version from each. Lines stay where they are.
 */
export function moduleComments(comments: readonly Comment[], code: string): Cut[] {
  return comments
    .filter(({ type, start, value }) =>
      type === "Line" && (start === 0 || code[start - 1] === "\n") && /^ \S+\.\w+$/.test(value)
    )
    .map(({ start, end }) => ({ start, end, text: "//" }));
}
