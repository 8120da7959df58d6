/**
 * The results of all experiments, as they are kept beside the figures (docs/assets/paper.json). All times are
 * virtual, so that a run of the same code gives the same numbers on any machine.
 */
import { Board, type BoardSize, PAPER_BOARD } from "./board_rows.ts";
import { byCommands } from "./commands.ts";
import { ages, carries, feedLags, share } from "./goals.ts";
import { type OneRow, oneRow } from "./one_row.ts";
import { ourTable } from "./our_table_3.ts";
import type { Habits } from "./rubbos.ts";
import { baselineTable, type Before, type Cost, type Moved } from "./table_3.ts";

/** How much of everything. */
export interface Size {
  readonly clients: number;
  readonly queries: number;
  /** Kilobytes added to each comment. */
  readonly attachmentKb: readonly number[];
  readonly board: BoardSize;
  /** Rows of figure 5. */
  readonly rows: number;
  /** Rows at the edge and numbers of commands of figure 6. */
  readonly commandRows: number;
  readonly commandKb: readonly number[];
  readonly commands: readonly number[];
  readonly ages: readonly number[];
  readonly carries: readonly number[];
  readonly share: { readonly clients: number; readonly stayMs: number; readonly runMs: number };
  readonly lags: number;
}

/** The paper's sizes; figure 5 with 2,000 rows for 10,000: in virtual time they are alike. */
export const FULL: Size = {
  clients: 100,
  queries: 22,
  attachmentKb: [0, 10, 100],
  board: PAPER_BOARD,
  rows: 2_000,
  commandRows: 10_000,
  commandKb: [1, 10, 100],
  commands: [1, 4, 16, 64, 256, 1_024, 4_096, 8_192],
  ages: [1, 10, 100, 1_000, 10_000, 100_000],
  carries: [1, 10, 100],
  share: { clients: 100, stayMs: 2_000, runMs: 20_000 },
  lags: 200,
};

/** Seconds. */
export const QUICK: Size = {
  ...FULL,
  clients: 4,
  attachmentKb: [0],
  board: { ...PAPER_BOARD, stories: 3, users: 50 },
  rows: 10,
  commandRows: 100,
  commandKb: [1],
  commands: [1, 64],
  ages: [1, 100],
  carries: [1],
  share: { clients: 5, stayMs: 2_000, runMs: 6_000 },
  lags: 3,
};

/** A mean, and how far the clients are apart. */
export interface Spread {
  readonly mean: number;
  readonly sd: number;
}

/** Moves of many clients. */
export interface Moves {
  readonly name: string;
  readonly ms: Spread;
  readonly bytes: Spread;
  /** What all reads took afterwards, one after the other; null: not asked. */
  readonly again: Cost | null;
  /** Of ours: how many of each kind. */
  readonly how?: Readonly<Record<string, number>>;
}

export interface Table3 {
  readonly attachmentKb: number;
  readonly before: Before;
  readonly baselines: readonly Moves[];
  readonly ours: readonly Moves[];
  /** On all links while all clients were at work. */
  readonly workBytes: { readonly baselines: number; readonly ours: number };
  readonly tokenBytes: number;
}

/** {@link OneRow} with its times as steps: how large a share took how long. */
export interface RowSteps extends Omit<OneRow, "ms"> {
  readonly steps: readonly (readonly [ms: number, share: number])[];
  readonly meanMs: number;
}

export interface Commands {
  readonly rowKb: number;
  readonly rows: number;
  readonly full: Cost;
  readonly by: readonly {
    readonly commands: number;
    readonly session: Cost;
    readonly ours: Cost;
    readonly oursAtOnce: Cost;
  }[];
}

export interface Results {
  readonly clients: number;
  readonly queries: number;
  readonly walk: string;
  readonly table3: readonly Table3[];
  readonly rows: readonly RowSteps[];
  readonly commands: readonly Commands[];
  readonly goals: {
    readonly ages: Awaited<ReturnType<typeof ages>>;
    readonly carries: Awaited<ReturnType<typeof carries>>;
    readonly share: {
      readonly handoffs: number;
      readonly nothing: number;
      readonly msMax: number;
      readonly tokenBytesMax: number;
    };
    readonly lagMs: { readonly p50: number; readonly max: number };
  };
}

/** Runs everything. */
export async function results(
  size: Size,
  { name, transitions }: Habits,
  say: (line: string) => void,
): Promise<Results> {
  const table3: Table3[] = [];
  for (const attachmentKb of size.attachmentKb) {
    const board = new Board({ ...size.board, attachmentBytes: attachmentKb * 1024 });
    table3.push(
      await table3Of(board, { attachmentKb, transitions, clients: size.clients, queries: size.queries }),
    );
    say(`table III with ${attachmentKb} KB more a comment: done`);
  }
  const rows = (await oneRow(size.rows)).map(stepsOf);
  say("figure 5 and table IV: done");
  const commands: Commands[] = [];
  for (const rowKb of size.commandKb) {
    commands.push(await commandsOf(rowKb, size));
    say(`figure 6 with rows of ${rowKb} KB: done`);
  }
  const lags = await feedLags(size.lags), { ms, ...shared } = await share(size.share);
  const goals = {
    ages: await ages(size.ages),
    carries: await carries(size.carries),
    share: { ...shared, msMax: Math.max(0, ...ms) },
    lagMs: { p50: lags.toSorted((a, b) => a - b)[lags.length >> 1] ?? NaN, max: Math.max(...lags) },
  };
  const found: Results = {
    clients: size.clients,
    queries: size.queries,
    walk: name,
    table3,
    rows,
    commands,
    goals,
  };
  return JSON.parse(
    JSON.stringify(found, (_, value) => typeof value === "number" ? Number(value.toPrecision(6)) : value),
  );
}

async function table3Of(
  board: Board,
  { attachmentKb, ...options }: {
    attachmentKb: number;
    transitions: Habits["transitions"];
    clients: number;
    queries: number;
  },
): Promise<Table3> {
  const baselines = await baselineTable({ board, ...options });
  const ours = await ourTable({ board, ...options });
  return {
    attachmentKb,
    before: baselines.before,
    baselines: [...baselines.moves].map(([{ name }, moves]) => movesOf(name, moves)),
    ours: [...ours.moves].map(([{ name }, moves]) => {
      const how: Record<string, number> = {};
      for (const move of moves) how[move.how] = (how[move.how] ?? 0) + 1;
      return { ...movesOf(name, moves), how };
    }),
    workBytes: { baselines: baselines.before.workBytes, ours: ours.workBytes },
    tokenBytes: ours.tokenBytes,
  };
}

function movesOf(name: string, moves: readonly Moved[]): Moves {
  const again = moves.flatMap((move) => move.again ?? []);
  const mean = (field: keyof Cost) => spread(again.map((cost) => cost[field])).mean;
  return {
    name,
    ms: spread(moves.map((move) => move.handoff.ms)),
    bytes: spread(moves.map((move) => move.handoff.bytes)),
    again: again.length === 0 ? null : { ms: mean("ms"), bytes: mean("bytes"), linkBytes: mean("linkBytes") },
  };
}

function spread(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const sd = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  // What is left of equal values is the arithmetic's own.
  return { mean, sd: sd < mean * 1e-9 ? 0 : sd };
}

/** Times that agree to a hundredth of a millisecond are one step. */
function stepsOf({ ms, ...what }: OneRow): RowSteps {
  const counts = new Map<number, number>();
  for (const each of ms) {
    const step = Math.round(each * 100) / 100;
    counts.set(step, (counts.get(step) ?? 0) + 1);
  }
  const steps = [...counts].sort(([a], [b]) => a - b).map(([step, count]) =>
    [step, count / ms.length] as const
  );
  return { ...what, steps, meanMs: ms.reduce((sum, each) => sum + each, 0) / ms.length };
}

async function commandsOf(rowKb: number, { commandRows, commands }: Size): Promise<Commands> {
  const found = await byCommands({ rows: commandRows, rowBytes: rowKb * 1024, commands });
  const none: Cost = { ms: NaN, bytes: NaN, linkBytes: NaN };
  return {
    rowKb,
    rows: commandRows,
    full: found.full,
    by: commands.map((count, i) => ({
      commands: count,
      session: found.session[i] ?? none,
      ours: found.ours[i] ?? none,
      oursAtOnce: found.oursAtOnce[i] ?? none,
    })),
  };
}
