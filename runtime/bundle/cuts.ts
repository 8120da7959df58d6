/** Cuts in a text: parts of it replaced, all at once, by their places in the original. */
import type { Comment } from "acorn";

/** A part of a text and what replaces it. */
export interface Cut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Returns the text with its cuts made; they do not overlap. */
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
 * Reports whether a comment of a bundle is one in which the bundler names the module that follows: it keeps no others
 * there.
 */
export const namesModule = ({ type, start, value }: Comment, code: string): boolean =>
  type === "Line" && (start === 0 || code[start - 1] === "\n") && /^ [^@]/.test(value);

/**
 * Returns cuts for the comments that name modules: they hold paths of the machine that bundled, so that one app would
 * have another version from each. Lines stay where they are.
 */
export const moduleComments = (comments: readonly Comment[], code: string): Cut[] =>
  comments.filter((comment) => namesModule(comment, code))
    .map(({ start, end }) => ({ start, end, text: "//" }));
