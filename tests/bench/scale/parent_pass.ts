/**
 * One pass of the figures of a parent with N direct children, in a process of its own: the root's replica (the
 * production store, storage in memory) and doubles (edge_double.ts) as its children, five of which cover what is
 * written. Time is virtual; CPU is this process's, so that of the doubles and the links is in it.
 *
 * Input (fresh.ts): {@link ParentInput}; answer: {@link ParentResult}. Needs `--expose-gc`.
 */
import { packKey } from "../../../store/model/key.ts";
import { pointRange, prefixRange, type Range } from "../../../store/model/range.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { freshAnswer, freshInput } from "../fresh.ts";
import type { EdgeDouble } from "./edge_double.ts";
import { Forest } from "./forest.ts";
import { cpuMicros, heapBytes, type Traffic } from "./virtual.ts";

export interface ParentInput {
  readonly children: number;
  /** Children that cover what is written. */
  readonly interested: number;
  /** Points that each child comes to cover beside. */
  readonly points: number;
  readonly writesPerMs: number;
  /** Virtual milliseconds of each phase. */
  readonly phaseMs: number;
}

/** By name; the unit is in the name. */
export type ParentResult = Record<string, number>;

const HOT = prefixRange(packKey(["a", "load", "hot"]));
const hotKey = (i: number) => packKey(["a", "load", "hot", i % 1000]);

class Parent {
  readonly forest = new Forest();
  readonly world = this.forest.world;
  readonly children: EdgeDouble[] = [];
  readonly #input: ParentInput;
  #written = 0;

  constructor(input: ParentInput) {
    this.#input = input;
  }

  get replica() {
    const site = this.forest.replicas.get("root");
    if (site === undefined) throw new Error("there is no root");
    return site.replica;
  }

  add(index: number, ranges: readonly Range[] = []): EdgeDouble {
    const child = this.forest.double(`edge-${index}`, "root", ranges);
    this.children.push(child);
    return child;
  }

  down = (kind?: string): Traffic => ({ ...this.world.traffic("root>double", kind) });
  up = (): Traffic => ({ ...this.world.traffic("double>root") });

  async joined(): Promise<number> {
    return await this.world.until(() => this.children.every((child) => child.live), "joining");
  }

  /** A phase with so many writes a millisecond at the parent, or pushed by the first child. */
  async phase(writesPerMs: number, where: "parent" | "child" = "parent"): Promise<number> {
    return await cpuMicros(async () => {
      for (let ms = 0; ms < this.#input.phaseMs; ms++) {
        for (let i = 0; i < writesPerMs; i++) {
          const key = hotKey(this.#written++);
          if (where === "parent") await this.replica.system.write([{ kind: "set", key, value: VALUE }]);
          else this.#push(key);
        }
        await this.world.tick();
      }
      this.forest.check();
    });
  }

  #push(key: ReturnType<typeof hotKey>): void {
    const [child] = this.children;
    const clock = (this.world.nowMs() - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS +
      this.#written % CLOCK_TICKS_PER_MS;
    const { replica } = child ?? { replica: 0 };
    child?.write([{ key, value: VALUE, clock, replica, known: 1, expiresAtMs: 0 }]);
  }
}

const MISS_EVERY_MS = 5;
const VALUE = new Uint8Array(1024);

async function run(input: ParentInput): Promise<ParentResult> {
  const { children: count, points, writesPerMs, phaseMs } = input;
  const parent = new Parent(input), { world, forest } = parent;
  const result: ParentResult = {};
  await forest.replica("root", null, "root");
  await forest.ready();
  for (let i = 0; i < count; i++) parent.add(i, i < input.interested ? [HOT] : []);

  // All at once, as after the start of a cluster.
  const heapAlone = heapBytes();
  const joinMicros = await cpuMicros(async () => {
    for (const child of parent.children) forest.connect(child.id);
    result["join, all at once: virtual ms"] = await parent.joined();
  });
  result["join, all at once: CPU µs/child"] = joinMicros / count;
  result["join, all at once: bytes/child"] = (parent.down().bytes + parent.up().bytes) / count;
  result["heap of a child and its system rows: bytes"] = (heapBytes() - heapAlone) / count;

  // Each child covers points of its own.
  const heapJoined = heapBytes();
  for (let i = 0; i < points; i++) {
    const answered = parent.children.map((child) => child.answers + 1);
    for (const child of parent.children) child.miss(pointRange(packKey(["a", "load", child.id, i])));
    await world.until(
      () => parent.children.every((child, j) => child.answers >= (answered[j] ?? 0)),
      "misses",
    );
  }
  if (points > 0) {
    result["heap of a child's covered point: bytes"] = (heapBytes() - heapJoined) / count / points;
  }

  // Idle, then writes with the idle cost subtracted.
  await parent.phase(writesPerMs);
  await world.run(1_500);
  let down = parent.down(), up = parent.up();
  const idle = await parent.phase(0);
  const idleDown = parent.down().messages - down.messages, idleUp = parent.up().messages - up.messages;
  const seconds = phaseMs / 1000;
  result["idle: CPU µs/child/s"] = idle / count / seconds;
  result["idle: marks down/child/s"] = idleDown / count / seconds;
  result["idle: marks up/child/s"] = idleUp / count / seconds;
  result["mark: bytes"] = (parent.down().bytes - down.bytes) / Math.max(1, idleDown);

  const writes = phaseMs * writesPerMs;
  down = parent.down();
  up = parent.up();
  const busy = await parent.phase(writesPerMs);
  const downOf = parent.down(), idleAgain = await parent.phase(0);
  result["write, 5 interested: CPU µs"] = (busy - (idle + idleAgain) / 2) / writes;
  result["write, 5 interested: messages down"] = (downOf.messages - down.messages - idleDown) / writes;
  result["write, 5 interested: bytes down"] = (downOf.bytes - down.bytes) / writes;
  result["all busy: CPU share of a core"] = busy / 1000 / phaseMs;
  const pushed = await parent.phase(writesPerMs, "child");
  result["pushed row, 5 interested: CPU µs"] = (pushed - (idle + idleAgain) / 2) / writes;

  await misses(parent, input, result);
  await newcomer(parent, result);
  await restart(parent, result);
  return result;
}

/** Misses of one child, one after the other, as long as a phase is; idle phases before and after are subtracted. */
async function misses(parent: Parent, input: ParentInput, result: ParentResult): Promise<void> {
  const { world } = parent, child = parent.children.at(-1), count = Math.ceil(input.phaseMs / MISS_EVERY_MS);
  if (child === undefined) return;
  const key = (i: number) => packKey(["a", "cold", i]);
  for (let i = 0; i < count; i++) {
    await parent.replica.system.write([{ kind: "set", key: key(i), value: VALUE }]);
  }
  await world.run(1_500);
  const idle = await parent.phase(0), before = parent.down("fetched"), answers = child.answers;
  const micros = await cpuMicros(async () => {
    for (let i = 0; i < count; i++) {
      child.miss(pointRange(key(i)));
      await world.run(MISS_EVERY_MS);
    }
  });
  const after = parent.down("fetched"), idleAgain = await parent.phase(0);
  if (child.answers !== answers + count) throw new Error("not every miss was answered");
  result["read miss: CPU µs"] = (micros - (idle + idleAgain) / 2) / count;
  result["read miss: answers"] = (after.messages - before.messages) / count;
  result["read miss: bytes down"] = (after.bytes - before.bytes) / count;
}

/** One more site. */
async function newcomer(parent: Parent, result: ParentResult): Promise<void> {
  const { world, forest } = parent, others = parent.children.length;
  const rows = () => parent.children.slice(0, others).reduce((sum, child) => sum + child.fed, 0);
  const before = rows(), bytes = parent.down("fetched").bytes;
  let ms = 0;
  const micros = await cpuMicros(async () => {
    forest.connect(parent.add(others).id);
    ms = await parent.joined();
    ms += await world.until(() => rows() >= before + 2 * others, "the news of one more site");
  });
  const idle = await cpuMicros(() => world.run(ms));
  result["one more site: CPU µs"] = micros - idle;
  result["one more site: virtual ms until all know it"] = ms;
  result["one more site: rows to others"] = rows() - before;
  result["one more site: bytes to it"] = parent.down("fetched").bytes - bytes;
}

/** The parent restarts over its disk, and all come back at once. */
async function restart(parent: Parent, result: ParentResult): Promise<void> {
  const { forest, world } = parent, root = forest.replicas.get("root");
  if (root === undefined) return;
  const closed = root.replica.close();
  await world.until(() => parent.children.length > 0, "closing");
  await world.run(10);
  await closed;
  for (const child of parent.children) child.disconnect();
  result["start with all its sites known: CPU ms"] = await cpuMicros(async () => {
    await forest.replica("root", null, "root", { storage: root.storage });
    await forest.world.settle();
  }) / 1000;
  const bytes = parent.down().bytes + parent.up().bytes;
  const micros = await cpuMicros(async () => {
    for (const child of parent.children) forest.connect(child.id);
    result["all come back: virtual ms"] = await parent.joined();
  });
  result["all come back: CPU µs/child"] = micros / parent.children.length;
  result["all come back: bytes/child"] = (parent.down().bytes + parent.up().bytes - bytes) /
    parent.children.length;
  forest.check();
}

if (import.meta.main) freshAnswer(await run(freshInput() as ParentInput));
