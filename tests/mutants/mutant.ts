/**
 * A mutant: one file of the project with one change.
 *
 * MU1  Its id depends on the name of the member that it changes, on what was there and what is there instead; not on
 *      the file's path or lines, nor on what stands in other members. Of several equal ones in a member it depends on
 *      the place among them.
 * MU2  It belongs to the rules that are cited where it is (rules.ts, RU3). What belongs to none so stands for the rules of
 *      its file that no code cites anywhere: they hold of the file as a whole.
 */
import { harmless } from "./harmless.ts";
import { type Change, changesOf, type OperatorName } from "./operators.ts";
import type { Citation } from "./rules.ts";
import { bareText, digest, lineOf, memberName, memberOf, type Parsed } from "./syntax.ts";

/** See the file's header. */
export interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly member: string;
  /** Of the member's text without comments: a result counts as long as it is the same. */
  readonly memberHash: string;
  readonly operator: OperatorName;
  readonly start: number;
  readonly end: number;
  readonly becomes: string;
  readonly line: number;
  /** What was there, in one line. */
  readonly was: string;
  /** Keys of rules. */
  readonly rules: readonly string[];
  /** The kind of those that need not be run, or null (harmless.ts). */
  readonly harmless: string | null;
}

/**
 * All mutants of a file, in the order of their places.
 * @param uncited keys of the file's rules that no code cites
 */
export async function mutantsOf(
  parsed: Parsed,
  citations: readonly Citation[],
  uncited: readonly string[] = [],
): Promise<Mutant[]> {
  const { text, path } = parsed;
  const hashes = new Map<object, string>();
  const seen = new Map<string, number>();
  const mutants: Mutant[] = [];
  for (const change of changesOf(parsed)) {
    const node = memberOf(change.node), member = memberName(change.node);
    const memberHash = hashes.get(node) ?? await digest(bareText(parsed, node));
    hashes.set(node, memberHash);
    const was = oneLine(text.slice(change.start, change.end));
    const what = JSON.stringify([member, change.operator, was, oneLine(change.becomes)]);
    const nth = (seen.get(what) ?? 0) + 1;
    seen.set(what, nth);
    mutants.push({
      id: (await digest(`${what} ${nth}`)).slice(0, 10),
      file: path,
      member,
      memberHash,
      operator: change.operator,
      start: change.start,
      end: change.end,
      becomes: change.becomes,
      line: lineOf(parsed, change.start),
      was,
      rules: rulesAt(change, citations, uncited),
      harmless: harmless(change)?.name ?? null,
    });
  }
  return mutants;
}

/** MU2 */
function rulesAt(
  { start, end }: Change,
  citations: readonly Citation[],
  uncited: readonly string[],
): readonly string[] {
  const found = citations.filter(({ covers }) => covers !== null && covers[0] <= start && end <= covers[1]);
  if (found.length === 0) return uncited;
  return [...new Set(found.map(({ rule }) => rule))].sort();
}

/** The text of a file with the change. */
export const mutated = (text: string, { start, end, becomes }: Pick<Mutant, "start" | "end" | "becomes">) =>
  text.slice(0, start) + becomes + text.slice(end);

/** A mutant as people are shown it. */
export const shownMutant = ({ file, line, member, operator, was, becomes }: Mutant): string =>
  `${file}:${line} ${member}: ${operator}: ${shortened(was)} → ${shortened(shownChange(operator, becomes))}`;

/** What is there instead, as people are shown it. */
function shownChange(operator: OperatorName, becomes: string): string {
  if (operator === "guard never") return "false";
  if (operator === "guard always") return "true";
  return becomes === "" || becomes === ";" || becomes === "{}" ? "nothing" : oneLine(becomes);
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

const SHOWN_CHARS = 110;
export const shortened = (text: string): string =>
  text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS - 1)}…`;
