/** Checkpoints of tracked state: 43 MB of which 1 % changed (CESSNA, 7.2), and what loading 10 MB takes. */
import { bytes, grid, list, map, SessionState, type TrackedGrid } from "../../../functions/tracked/mod.ts";
import { z } from "zod";
import type { BenchContext } from "../bench.ts";
import { runFresh } from "../fresh.ts";
import { type BenchRecord, record, type Target } from "../record.ts";

const MB = 1_000_000;
const CHANGED = 0.01;

const atMost = (value: number): Target => ({ of: "median", op: "<=", value });

/** splitmix32. */
function draws(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) % below;
  };
}

interface Subject {
  readonly name: string;
  readonly target?: Target;
  /** Makes the fields and, given these, one run's changes. */
  readonly fields: () => Record<string, unknown>;
  readonly change: (fields: Record<string, unknown>, draw: (below: number) => number) => void;
}

/** The paper's video analytics: frames of 768 × 576, tens of them. */
const FRAME = { width: 768, height: 576 };

function frames(megabytes: number): TrackedGrid {
  const height = Math.round((megabytes * MB) / FRAME.width);
  const all = grid({ width: FRAME.width, height, type: "uint8" });
  all.edit(0, height, (rows) => void rows.forEach((_, i) => rows[i] = i * 31 + (i >> 8)));
  return all;
}

/** A shopping list's worth of fields. */
const entryOf = (n: number, price: number) => ({
  article: `article ${n}`,
  price,
  tags: ["a", "b"],
  stock: n % 97,
});
/** Bytes of one, about. */
const ENTRY_BYTES = 75;

function entries(megabytes: number): ReturnType<typeof map<string, unknown>> {
  const all = map<string, unknown>();
  for (let n = 0; n < (megabytes * MB) / ENTRY_BYTES; n++) all.set(`key-${n}`, entryOf(n, n / 4));
  return all;
}

function items(megabytes: number): ReturnType<typeof list<unknown>> {
  const all = list<unknown>();
  for (let n = 0; n < (megabytes * MB) / ENTRY_BYTES; n++) all.push(entryOf(n, n / 4));
  return all;
}

const changes = (megabytes: number): Subject[] => [
  {
    name: "grid, 1 % changed in pages",
    target: atMost(2),
    fields: () => ({ all: frames(megabytes) }),
    change: ({ all }, draw) => {
      const board = all as TrackedGrid;
      const rows = Math.round(board.height * CHANGED / 8);
      for (let page = 0; page < 8; page++) {
        const from = draw(board.height - rows);
        board.edit(from, from + rows, (part) => part.fill(draw(256)));
      }
    },
  },
  {
    name: "grid, 1 % of the cells changed, scattered",
    target: atMost(50),
    fields: () => ({ all: frames(megabytes) }),
    change: ({ all }, draw) => {
      const board = all as TrackedGrid;
      const cells = board.width * board.height * CHANGED;
      for (let i = 0; i < cells; i++) board.set(draw(board.width), draw(board.height), draw(256));
    },
  },
  {
    name: "map, 1 % of the entries changed, scattered",
    target: atMost(50),
    fields: () => ({ all: entries(megabytes) }),
    change: ({ all }, draw) => {
      const of = all as ReturnType<typeof entries>;
      const { size } = of;
      for (let i = 0; i < size * CHANGED; i++) {
        const n = draw(size);
        of.set(`key-${n}`, entryOf(n, draw(1000)));
      }
    },
  },
  {
    name: "list, 1 % of the items changed, scattered",
    target: atMost(50),
    fields: () => ({ all: items(megabytes) }),
    change: ({ all }, draw) => {
      const of = all as ReturnType<typeof items>;
      const { length } = of;
      for (let i = 0; i < length * CHANGED; i++) of.set(draw(length), entryOf(i, draw(1000)));
    },
  },
];

function checkpoints(subject: Subject, runs: number): { readonly ms: number[]; readonly bytes: number[] } {
  const fields = subject.fields();
  const state = new SessionState(fields);
  state.checkpoint();
  const draw = draws(7);
  const taken = { ms: [] as number[], bytes: [] as number[] };
  // The first are for the compiler.
  for (let run = -2; run < runs; run++) {
    subject.change(fields, draw);
    const begun = performance.now();
    const segment = state.checkpoint();
    const ms = performance.now() - begun;
    if (run < 0) continue;
    taken.ms.push(ms);
    taken.bytes.push(segment.length);
  }
  return taken;
}

interface Loaded {
  readonly name: string;
  readonly target: Target;
  readonly make: (megabytes: number) => Record<string, unknown>;
  readonly blank: () => Record<string, unknown>;
  /** Something of it is read: what a first message does. */
  readonly touch: (fields: Record<string, unknown>) => unknown;
}

const LOADED: readonly Loaded[] = [
  {
    name: "bytes",
    target: atMost(10),
    make: (megabytes) => ({
      all: bytes(Uint8Array.from({ length: megabytes * MB }, (_, i) => i * 31 + (i >> 8))),
    }),
    blank: () => ({ all: bytes() }),
    touch: ({ all }) => (all as ReturnType<typeof bytes>).at(5),
  },
  {
    name: "a map and a list",
    target: atMost(40),
    make: (megabytes) => ({ all: entries(megabytes / 2), more: items(megabytes / 2) }),
    blank: () => ({ all: map(), more: list() }),
    touch: (
      { all, more },
    ) => [(all as ReturnType<typeof entries>).get("key-77"), (more as ReturnType<typeof items>).at(77)],
  },
];

function loads({ make, blank, touch }: Loaded, megabytes: number, runs: number): number[] {
  const fields = make(megabytes);
  const state = new SessionState(fields);
  const whole = state.checkpoint();
  const ms: number[] = [];
  for (let run = -2; run < runs; run++) {
    // As it comes from a disk or a link: in a buffer of its own.
    const bytes = whole.slice();
    const begun = performance.now();
    const fresh = blank();
    new SessionState(fresh).load(bytes);
    touch(fresh);
    if (run >= 0) ms.push(performance.now() - begun);
  }
  return ms;
}

/** The figures of tracked structures. */
export async function tracked({ quick, say }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  const of = { bench: "session", comparable: !quick };
  const megabytes = quick ? 1 : 43;
  const runs = quick ? 3 : 15;
  for (const subject of changes(megabytes)) {
    const { ms, bytes } = checkpoints(subject, runs);
    const name = `checkpoint of ${megabytes} MB: ${subject.name}`;
    say(`${name}: ${ms.map((each) => each.toFixed(1)).join(", ")} ms`);
    records.push(
      record({ ...of, case: name, unit: "ms", samples: ms, ...subject.target && { target: subject.target } }),
      record({ ...of, case: name, unit: "bytes", samples: bytes }),
    );
  }
  const loaded = quick ? 1 : 10;
  for (const each of LOADED) {
    const ms = loads(each, loaded, runs);
    say(`load of ${loaded} MB of ${each.name}: ${ms.map((run) => run.toFixed(1)).join(", ")} ms`);
    const name = `local cold load of ${loaded} MB: ${each.name}`;
    records.push(record({ ...of, case: name, unit: "ms", samples: ms, target: each.target }));
  }
  const idle = z.number().parse(
    await runFresh({
      name: "idle",
      script: new URL("./idle.ts", import.meta.url),
      input: quick ? 500 : 10_000,
      flags: ["--v8-flags=--expose-gc"],
    }),
  );
  say(`an idle one: ${idle.toFixed(0)} bytes`);
  records.push(
    record({
      ...of,
      case: "state of an idle stateful session: a map and a list of one, two fields",
      unit: "bytes",
      samples: [idle],
    }),
  );
  return records;
}
