/** The pictures of the paper's figures 5 and 6 and of its table III, with ours beside them, from the results. */
import { dotChart, type DotRow, type Line, lineChart } from "./charts.ts";
import { PAPER_ROWS, PAPER_TABLE_3 } from "./paper_numbers.ts";
import type { Cost } from "./table_3.ts";
import type { Commands, Moves, Results, RowSteps, Table3 } from "./results.ts";
import { bytesName, linear, logarithmic, msName } from "./scale.ts";
import type { Svg } from "./svg.ts";

/** By file name. */
export function figures(results: Results): ReadonlyMap<string, Svg> {
  return new Map([
    ["paper-figure-5.svg", figure5(results)],
    ["paper-figure-6.svg", figure6(results)],
    ["paper-table-3.svg", table3(results)],
  ]);
}

const VIRTUAL = "times of links and disks, no processors";
const SYSTEMS: Readonly<Record<string, string>> = {
  all: "full replication, all",
  quorum: "full replication, quorum",
  single: "single replication",
  strong: "full replication, strong",
};

function figure5({ rows }: Results): Svg {
  const row = (one: RowSteps): DotRow => {
    const place = one.from === ""
      ? ""
      : `, held at the ${one.from === "cloud" ? "cloud" : one.from.slice(0, -2)}`;
    const isOurs = one.system === "ours";
    const paper =
      PAPER_ROWS.find((each) =>
        each.system === one.system && each.operation === one.operation && each.from === one.from
      )?.ms ?? null;
    const steps = one.steps.filter(([, share]) => share >= 0.01);
    const first = steps[0]?.[0] ?? 0, last = steps.at(-1)?.[0] ?? 0;
    return {
      label: `${SYSTEMS[one.system] ?? one.system}${place}`,
      isOurs,
      dots: [
        ...steps.map(([ms, share]) => ({
          value: ms,
          says: `${msName(ms)}, ${Math.round(share * 100)} %`,
          series: isOurs ? "ours" as const : one.system === "SessionStore" ? 0 : 1,
          shape: "full" as const,
        })),
        ...paper === null
          ? []
          : [{ value: paper, says: `paper: ${msName(paper)}`, series: 0, shape: "hollow" as const }],
      ],
      note: steps.length > 1 && last - first > 1 ? `${first} to ${msName(last)}` : msName(one.meanMs),
    };
  };
  return dotChart({
    title: `A row of 1 KB, read and written at an edge (figure 5; ${VIRTUAL})`,
    says:
      "Times of reads and writes of one row at edge-1: SessionStore and ours depend on where the row is held; " +
      "eager and strong replication pay round trips to other sites for each write.",
    x: linear("milliseconds", 120, 20),
    left: 250,
    groups: [
      { title: "Reads", rows: rows.filter((one) => one.operation === "read").map(row) },
      { title: "Durable writes", rows: rows.filter((one) => one.operation === "write").map(row) },
    ],
    legend: [
      { label: "ours", series: "ours", shape: "full" },
      { label: "SessionStore, our baseline", series: 0, shape: "full" },
      { label: "SessionStore, the paper's mean", series: 0, shape: "hollow" },
      { label: "eager or strong replication, our baselines", series: 1, shape: "full" },
    ],
  });
}

/** Numbers of commands that have room for their names. */
const NAMED = [1, 4, 16, 64, 256, 1_024];

function figure6({ commands }: Results): Svg {
  const lines = commands.flatMap((one, series): Line[] => [
    {
      label: `full, rows of ${one.rowKb} KB`,
      series,
      style: "dashed",
      points: one.by.map((point) => says(point.commands, one.full)),
      nudge: one.rowKb === 1 ? -6 : -4,
    },
    {
      label: `session-aware, rows of ${one.rowKb} KB`,
      series,
      style: "solid",
      points: one.by.map((point) => says(point.commands, point.session)),
      nudge: 8,
    },
  ]);
  const last = commands.at(-1),
    ours = (name: string, pick: (by: Commands["by"][number]) => Cost): Line => ({
      label: name,
      series: "ours",
      style: name.includes("at once") ? "dotted" : "solid",
      points: (last?.by ?? []).map((point) => says(point.commands, pick(point))),
    });
  const greatest = Math.max(8_192, ...last?.by.map((point) => point.commands) ?? []);
  return lineChart({
    title: `A session goes on at an empty edge (figure 6; ${VIRTUAL})`,
    says:
      "Time of a handoff by the number of commands that the session has run: full reconciliation is flat and " +
      "grows with the rows held, session-aware reconciliation grows with the commands, ours is flat at zero.",
    x: logarithmic("commands that the session has run, each on one row of 10,000", {
      from: 1,
      to: greatest,
      hasZero: false,
      base: 2,
      name: (value) => value === greatest || NAMED.includes(value) ? value.toLocaleString("en-US") : "",
    }),
    y: logarithmic("milliseconds until the next query may run", {
      from: 10,
      to: 10_000,
      hasZero: true,
      name: (value) => value.toLocaleString("en-US"),
    }),
    lines: [
      ...lines,
      ours("ours, feeds current", (by) => by.ours),
      ours("ours, at once after a write", (by) => by.oursAtOnce),
    ],
  });
}

const says = (commands: number, cost: Cost) => ({
  x: commands,
  y: cost.ms,
  says: `${commands.toLocaleString("en-US")} commands: ${msName(cost.ms)}, ${bytesName(cost.bytes)}`,
});

const KB = (kb: number): string => kb === 0 ? "text only" : `${kb} KB more a comment`;

function table3({ table3 }: Results): Svg {
  const names = table3[0]?.baselines.map(({ name }) => name) ?? [];
  const oursNames = table3[0]?.ours.map(({ name }) => name) ?? [];
  const find = (moves: readonly Moves[], name: string) => moves.find((each) => each.name === name);
  const row = (
    label: string,
    pick: (table: Table3) => number | undefined,
    paper: (attachmentKb: number) => number | undefined = () => undefined,
  ): DotRow => ({
    label,
    isOurs: label.startsWith("ours"),
    dots: table3.flatMap((table, series) => {
      const { attachmentKb } = table, bytes = pick(table), theirs = paper(attachmentKb);
      const dot = (value: number, who: string, shape: "full" | "hollow") => ({
        value,
        says: `${who}${KB(attachmentKb)}: ${bytesName(value)}`,
        series,
        shape,
      });
      return [
        ...bytes === undefined ? [] : [dot(bytes, "", "full")],
        ...theirs === undefined ? [] : [dot(theirs, "paper, ", "hollow")],
      ];
    }),
    note: rangeOf(table3.flatMap((table) => pick(table) ?? [])),
  });
  const baseline = (name: string) =>
    row(name, ({ baselines }) => find(baselines, name)?.bytes.mean, (kb) => {
      const cell = PAPER_TABLE_3[kb]?.[name];
      return cell === undefined ? undefined : cell.kb * 1_000;
    });
  const ours = (name: string) => row(`ours, ${name}`, ({ ours }) => find(ours, name)?.bytes.mean);
  const again = ["session-aware", "Δ-list", "sibling, nobody there"].map((name) =>
    row(name, ({ baselines }) => find(baselines, name)?.again?.bytes)
  );
  const oursAgain = oursNames.flatMap((name) =>
    table3.some((table) => find(table.ours, name)?.again != null)
      ? [row(`ours, ${name}`, (table) => find(table.ours, name)?.again?.bytes)]
      : []
  );
  return dotChart({
    title: "Bytes that a session's move takes (table III)",
    says:
      "Bytes moved by each strategy for a client of RUBBoS, for three sizes of comments, the paper's numbers " +
      "beside our baselines; ours moves nothing when feeds are current, and fetches rows when they are read.",
    x: logarithmic("bytes", { from: 1_000, to: 1e9, hasZero: true, name: bytesName }),
    left: 290,
    groups: [
      { title: "SessionStore, until the next query may run", rows: names.map(baseline) },
      { title: "Ours, until the next query may run", rows: oursNames.map(ours) },
      { title: "Afterwards, to run all its reads again", rows: [...again, ...oursAgain] },
    ],
    legend: [
      ...table3.map(({ attachmentKb }, series) => ({
        label: KB(attachmentKb),
        series,
        shape: "full" as const,
      })),
      { label: "the paper's", series: "ours", shape: "hollow" as const },
    ],
  });
}

function rangeOf(bytes: readonly number[]): string {
  const least = Math.min(...bytes), greatest = Math.max(...bytes);
  return least === greatest ? bytesName(least) : `${bytesName(least)} – ${bytesName(greatest)}`;
}
