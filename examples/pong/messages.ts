/** What players and a table say to each other, each a JSON text. From players it is parsed, here and nowhere else. */
import * as z from "zod";

const key = z.string().min(8).max(100);

/** From a player's page. */
export const Said = z.discriminatedUnion("kind", [
  /** Takes a free seat, or one's own again: whoever knows its key. */
  z.object({ kind: z.literal("sit"), key, name: z.string().trim().min(1).max(24) }),
  /** Where the paddle is wanted; the n-th time this player says so. */
  z.object({ kind: z.literal("aim"), n: z.int().min(0), y: z.number() }),
  /** Another match, after one is over. */
  z.object({ kind: z.literal("again") }),
  /** Leaves the seat. */
  z.object({ kind: z.literal("leave") }),
]);
export type Said = z.infer<typeof Said>;

/** A table hangs up on nobody who sends this much, but reads no more of it. */
export const SAID_CHARS_MAX = 1_000;

/** What a message says; null: nothing that a table understands. */
export function understood(message: string | Uint8Array): Said | null {
  if (typeof message !== "string" || message.length > SAID_CHARS_MAX) return null;
  try {
    return Said.safeParse(JSON.parse(message)).data ?? null;
  } catch {
    return null;
  }
}

/** What goes on: `empty` without two players, `away` while one is not heard of. */
export type Phase = "empty" | "away" | "hold" | "rally" | "over";

/** A table, as it is told to everybody. */
export interface State {
  readonly kind: "state";
  /** Counts what was told; who has this one has nothing newer of a lower number. */
  readonly frame: number;
  /** Counts matches at this table. */
  readonly match: number;
  readonly phase: Phase;
  readonly ball: readonly [x: number, y: number, vx: number, vy: number];
  readonly paddles: readonly [number, number];
  readonly points: readonly [number, number];
  readonly rally: number;
  readonly longest: number;
  readonly winner: 0 | 1 | null;
  readonly names: readonly [string | null, string | null];
  /** The `n` of the newest `aim` of each player that counts. */
  readonly seen: readonly [number, number];
  readonly watching: number;
}

/** Told to one alone: the seat that it has. */
export interface You {
  readonly kind: "you";
  readonly seat: 0 | 1 | null;
  /** The player goes on counting from here. */
  readonly seen: number;
  readonly problem?: string;
}
