/**
 * What is fuzzed: something that reads bytes, texts or JSON from outside, a corpus of valid ones, and what must hold
 * of a changed one.
 */
import { isDeepStrictEqual } from "node:util";
import type { Dice } from "./dice.ts";

/** Thrown where a changed input does what it must not. */
export class Finding extends Error {
  override readonly name = "Finding";
}

/** One reader under attack. */
export interface Subject {
  /**
   * Makes one changed input and holds the reader to it; a label of what came of it, for the counts.
   *
   * @throws Finding, or whatever the reader throws that it should not.
   */
  readonly attempt: (dice: Dice) => string | Promise<string>;
  readonly close?: () => Promise<void>;
}

/** A kind of outside data. */
export interface Target {
  readonly name: string;
  /** What must hold. */
  readonly says: string;
  /** Labels that have to appear in some thousand attempts: a run that reaches nothing shows nothing. */
  readonly reaches: readonly string[];
  /** How many a quick run makes. */
  readonly quick: number;
  readonly open: (seed: number) => Subject;
}

/** A JSON reader: refuses with its own error, or gives what it reads back as the same. */
export function jsonAttempt(
  mutant: () => unknown,
  read: (value: unknown) => unknown,
  refusal: (error: unknown) => string | null,
): string {
  let value: unknown;
  try {
    value = mutant();
  } catch (error) {
    if (error instanceof SyntaxError) return "no JSON";
    throw error;
  }
  let first: string;
  try {
    first = JSON.stringify(read(value));
  } catch (error) {
    const label = refusal(error);
    if (label === null) throw error;
    return label;
  }
  const again = JSON.stringify(read(JSON.parse(first)));
  if (!isDeepStrictEqual(JSON.parse(again), JSON.parse(first))) {
    throw new Finding(`accepted, and read back as another: ${first} → ${again}`);
  }
  return "round-trips";
}
