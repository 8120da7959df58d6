/**
 * Benchmark `paper`: SessionStore's tables III and IV and figures 5 and 6, its strategies and the alternatives that
 * it compares itself with written anew (baselines/), our store beside them. All in virtual time over the paper's
 * links: bytes, messages and times of links and disks are exact and the same on any machine.
 *
 * `--svg FOLDER` writes the pictures, and the numbers that they show (paper.json) beside them.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { figures } from "./baselines/figures.ts";
import { PAPER_ROWS, PAPER_TABLE_3 } from "./baselines/paper_numbers.ts";
import { FULL, QUICK, type Results, results, type RowSteps, type Table3 } from "./baselines/results.ts";
import { habits } from "./baselines/rubbos.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { type BenchRecord, type Figure, record, type Target } from "./record.ts";

async function run({ quick, args, say }: BenchContext): Promise<BenchRecord[]> {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    options: { svg: { type: "string" }, rubbos: { type: "string" } },
  });
  const found = await results(quick ? QUICK : FULL, await habits(values.rubbos), say);
  if (values.svg !== undefined) {
    await Deno.mkdir(values.svg, { recursive: true });
    await Deno.writeTextFile(join(values.svg, "paper.json"), JSON.stringify(found, null, 1) + "\n");
    for (const [name, svg] of figures(found)) await Deno.writeTextFile(join(values.svg, name), svg);
    say(`paper.json and the pictures are in ${values.svg}`);
  }
  for (const line of [...found.table3.flatMap(table3Lines), ...rowLines(found.rows)]) say(line);
  return [
    ...found.table3.flatMap(table3Records),
    ...found.rows.flatMap(rowRecords),
    ...found.commands.flatMap(commandRecords),
    ...goalRecords(found, quick),
  ];
}

const figure = (name: string, unit: string, value: number, more: Partial<Figure> = {}): BenchRecord =>
  record({ bench: "paper", case: name, unit, samples: [value], ...more });

const most = (value: number): { target: Target } => ({ target: { of: "median", op: "<=", value } });

// ── Table III ──

const sizeOf = ({ attachmentKb }: Table3): string => attachmentKb === 0 ? "text" : `+ ${attachmentKb} KB`;

function table3Lines(table: Table3): string[] {
  const { before, baselines, ours, workBytes } = table;
  const kb = (bytes: number) => `${(bytes / 1_000).toFixed(1)} KB`;
  return [
    `table III, ${sizeOf(table)}: ${before.queries} queries of ${
      before.rowsPerQuery.toFixed(1)
    } rows; at edge-1 ` +
    `${before.rows} rows, ${before.comments} comments, ${kb(before.bytes)}; a client's: ` +
    `${before.commentsPerClient.toFixed(0)} comments; on all links meanwhile ${
      kb(workBytes.baselines)
    }, ours ${kb(workBytes.ours)}`,
    ...baselines.map(({ name, ms, bytes, again }) => {
      const paper = PAPER_TABLE_3[table.attachmentKb]?.[name];
      return `  ${name}: ${kb(bytes.mean)} (sd ${kb(bytes.sd)}), ${ms.mean.toFixed(1)} ms` +
        (paper === undefined ? "" : `; paper ${paper.kb} KB, ${paper.ms} ms`) +
        (again === null ? "" : `; reads again ${kb(again.bytes)}, ${again.ms.toFixed(1)} ms`);
    }),
    ...ours.map(({ name, ms, bytes, again, how }) =>
      `  ours ${name}: ${kb(bytes.mean)}, ${ms.mean.toFixed(2)} ms (${JSON.stringify(how)})` +
      (again === null ? "" : `; reads again ${kb(again.bytes)}, ${again.ms.toFixed(1)} ms`)
    ),
  ];
}

function table3Records(table: Table3): BenchRecord[] {
  const named = (name: string) => `table III, ${sizeOf(table)}, ${name}`;
  return [...table.baselines, ...table.ours.map((each) => ({ ...each, name: `ours ${each.name}` }))].flatMap(
    (moves) => {
      const isCurrent = moves.name.startsWith("ours") && !moves.name.includes("at once");
      const { again } = moves;
      return [
        figure(named(moves.name), "bytes", moves.bytes.mean, isCurrent ? most(0) : {}),
        figure(named(moves.name), "virtual ms", moves.ms.mean, isCurrent ? most(1) : {}),
        ...again === null ? [] : [
          figure(named(`${moves.name}, reads again`), "bytes", again.bytes),
          figure(named(`${moves.name}, reads again`), "bytes on all links", again.linkBytes),
          figure(named(`${moves.name}, reads again`), "virtual ms", again.ms),
        ],
      ];
    },
  );
}

// ── Figure 5 and table IV ──

const rowName = ({ system, operation, from }: RowSteps): string =>
  `${operation} 1 KB, ${system}${from === "" ? "" : ` from ${from}`}`;

function rowLines(rows: readonly RowSteps[]): string[] {
  return rows.map((one) => {
    const paper = PAPER_ROWS.find((each) =>
      each.system === one.system && each.operation === one.operation && each.from === one.from
    );
    const theirs = [
      ...paper?.bytes == null ? [] : [`${paper.bytes} bytes`],
      ...paper?.ms == null ? [] : [`${paper.ms} ms`],
    ];
    return `  ${rowName(one)}: ${one.bytes.toFixed(1)} bytes, ${one.linkBytes.toFixed(1)} on all links, ` +
      `${one.meanMs.toFixed(2)} ms${theirs.length === 0 ? "" : `; paper ${theirs.join(", ")}`}`;
  });
}

function rowRecords(one: RowSteps): BenchRecord[] {
  return [
    figure(rowName(one), "bytes", one.bytes),
    figure(rowName(one), "bytes on all links", one.linkBytes),
    figure(rowName(one), "virtual ms, mean", one.meanMs),
  ];
}

// ── Figure 6 ──

function commandRecords({ rowKb, full, by }: Results["commands"][number]): BenchRecord[] {
  const named = (name: string) => `rows of ${rowKb} KB, ${name}`;
  return [
    figure(named("full"), "bytes", full.bytes),
    figure(named("full"), "virtual ms", full.ms),
    ...by.flatMap(({ commands, session, ours, oursAtOnce }) => [
      figure(named(`session-aware, ${commands} commands`), "bytes", session.bytes),
      figure(named(`session-aware, ${commands} commands`), "virtual ms", session.ms),
      figure(named(`ours, ${commands} commands`), "bytes", ours.bytes, most(0)),
      figure(named(`ours, ${commands} commands, at once after a write`), "virtual ms", oursAtOnce.ms),
    ]),
  ];
}

// ── Goals ──

/** Links alone, there and back again between edge-1 and edge-3, one way. */
const LAG_LINKS_MS = 22;

function goalRecords({ goals }: Results, quick: boolean): BenchRecord[] {
  const { share, lagMs } = goals;
  const comparable = { comparable: !quick };
  return [
    ...goals.ages.flatMap(({ operations, handoff, tokenBytes }) => {
      const name = `handoff of a session of ${operations.toLocaleString("en-US")} operations`;
      return [
        figure(name, "bytes", handoff.bytes, most(0)),
        figure(name, "virtual ms", handoff.ms, most(0)),
        figure(name, "bytes of token", tokenBytes, most(256)),
      ];
    }),
    ...goals.carries.flatMap(({ to, rows, ratio, beyondMs }) => {
      const name = `handoff to ${to} with ${rows} pending rows of 1 KB`;
      return [
        figure(name, "bytes carried ÷ bytes of the rows", ratio, most(1.2)),
        figure(name, "virtual ms beyond one round trip to the source", beyondMs, most(2)),
      ];
    }),
    figure(
      "100 clients that move every 2 s, 10 % writes",
      "% of handoffs that need nothing",
      100 * share.nothing / share.handoffs,
      {
        target: { of: "median", op: ">=", value: 95 },
        ...comparable,
      },
    ),
    figure("100 clients that move every 2 s, 10 % writes", "virtual ms, the longest handoff", share.msMax),
    figure("feed lag edge → cloud → other edge", "virtual ms p50", lagMs.p50, most(LAG_LINKS_MS + 5)),
    figure("feed lag edge → cloud → other edge", "virtual ms, the longest", lagMs.max),
  ];
}

/** See the file header. */
export const bench: Bench = {
  name: "paper",
  summary:
    "SessionStore's tables III, IV and figures 5, 6 in virtual time: its strategies as baselines, ours beside them",
  options: [
    "--svg FOLDER       write the pictures and their numbers (paper.json) there",
    "--rubbos FOLDER    RUBBoS's transition tables (transitions.json), if not beside the checkout",
  ],
  notMeasured:
    "processors: neither ours nor a database's, so times are those of links and disks alone; TLS, TCP and " +
    "IP; lost messages; the paper's implementation on Cassandra, whose strategies are written anew on our encoding",
  byDefault: true,
  run,
};
