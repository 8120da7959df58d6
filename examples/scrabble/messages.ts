/** What players and a game say to each other, each a JSON text. From players it is parsed, here and nowhere else. */
import * as z from "zod";
import { SIZE } from "./board.ts";
import type { Made } from "./rules.ts";
import { RACK_TILES } from "./tiles.ts";

const square = z.int().min(0).max(SIZE - 1);
/** Which move of the game it is meant to be: one that comes twice, or too late, is not another one. */
const move = z.int().min(1).max(100_000);

/** From a player's page. */
export const Said = z.discriminatedUnion("kind", [
  /** Takes a seat, or one's own again: whoever knows its key. */
  z.object({
    kind: z.literal("sit"),
    key: z.string().min(8).max(100),
    name: z.string().trim().min(1).max(24),
  }),
  z.object({ kind: z.literal("start") }),
  z.object({
    ...{ kind: z.literal("play"), move },
    tiles: z.array(z.object({ x: square, y: square, tile: z.string().regex(/^[A-Za-z]$/) })).min(1).max(
      RACK_TILES,
    ),
  }),
  z.object({ ...{ kind: z.literal("exchange"), move }, tiles: z.string().regex(/^[A-Z_]{1,7}$/) }),
  z.object({ ...{ kind: z.literal("pass"), move } }),
  z.object({ ...{ kind: z.literal("resign"), move } }),
  /** Gives up a seat before the game has begun, or after it is over. */
  z.object({ kind: z.literal("leave") }),
]);
export type Said = z.infer<typeof Said>;

const SAID_CHARS_MAX = 2_000;

/** What a message says; null: nothing that a game understands. */
export function understood(message: string | Uint8Array): Said | null {
  if (typeof message !== "string" || message.length > SAID_CHARS_MAX) return null;
  try {
    return Said.safeParse(JSON.parse(message)).data ?? null;
  } catch {
    return null;
  }
}

/** What everybody may know. */
export interface Open {
  readonly phase: "waiting" | "playing" | "over";
  /** Counts games at this table. */
  readonly round: number;
  readonly names: readonly string[];
  readonly board: string;
  readonly points: readonly number[];
  /** Tiles on each rack, and in the bag: how many, not which. */
  readonly racks: readonly number[];
  readonly bag: number;
  readonly turn: number;
  readonly moves: readonly Made[];
  readonly winners: readonly number[];
  /** When the turn is over, by the game's clock; null while nobody's is. */
  readonly endsMs: number | null;
}

/** A game as it is told to one who looks. */
export interface View {
  readonly kind: "view";
  /** Counts what happened; `open` of one moment is the same for everybody. */
  readonly moment: number;
  readonly open: Open;
  readonly yours: {
    readonly seat: number | null;
    /** Nobody else is told. */
    readonly rack: string;
    readonly nowMs: number;
    readonly watching: number;
  };
}

/** Why what one said was not done. Told to one alone. */
export interface Problem {
  readonly kind: "problem";
  readonly problem: string;
}
