/**
 * One pass of the figure "cost per write at a parent", in a process of its own: a root's replica (the production
 * core) over storage in memory, with children that are messages only: they join, five of them fetch the range that
 * is written, the others one of their own, and all push their clocks as idle sites do.
 *
 * Time is virtual, so that writes come at a fixed rate however slow the machine is; the cost is this process's CPU
 * time while writes come, less what the same children cost for as long without writes.
 *
 * Input (fresh.ts): {@link FanoutInput}; answer: {@link FanoutResult}.
 */
import { cpuUsage } from "node:process";
import { setImmediate } from "node:timers";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { packKey } from "../../../store/model/key.ts";
import { MARK_IDLE_MS } from "../../../store/model/limits.ts";
import { decodeMessage, encodeMessage, type Message } from "../../../store/wire/message.ts";
import type { Clock } from "../../../store/model/ports.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { openReplica } from "../../../store/replica.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

export interface FanoutInput {
  readonly children: number;
  readonly interested: number;
  readonly writesPerMs: number;
  /** Virtual milliseconds of each phase. */
  readonly phaseMs: number;
}

export interface FanoutResult {
  /** CPU of one write, idle children subtracted. */
  readonly microsPerWrite: number;
  /** CPU of one idle child for a second. */
  readonly microsPerChildSecond: number;
  /** Messages to children during the writes, those to idle children subtracted, per write: exact on any machine. */
  readonly messagesPerWrite: number;
}

/** Time that goes on when it is told to. */
class SteppedClock implements Clock {
  #nowMs = CLOCK_EPOCH_MS + 365 * 24 * 3_600_000;
  readonly #due = new Map<number, Set<() => void>>();

  nowMs(): number {
    return this.#nowMs;
  }

  steadyMs(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const atMs = this.#nowMs + Math.max(1, Math.ceil(ms));
    const entry = () => callback();
    const at = this.#due.get(atMs);
    if (at === undefined) this.#due.set(atMs, new Set([entry]));
    else at.add(entry);
    return () => this.#due.get(atMs)?.delete(entry);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  step(): void {
    const due = this.#due.get(++this.#nowMs);
    this.#due.delete(this.#nowMs);
    for (const run of due ?? []) run();
  }
}

/** A child's side of the protocol, as little of it as the parent asks for. */
class StubChild {
  readonly id: string;
  readonly hot: boolean;
  head = 0;
  joined = false;

  constructor(index: number, hot: boolean) {
    this.id = `edge-${index}`;
    this.hot = hot;
  }

  hello(): Message {
    return {
      kind: "hello",
      attempt: 1,
      replica: 0,
      parentReplica: 0,
      cursor: 0,
      clock: 0,
      tier: "edge",
      url: `http://${this.id}`,
      linkAddress: this.id,
      coverage: [],
    };
  }

  fetch(): Message {
    const range = prefixRange(packKey(["a", "load", this.hot ? "hot" : this.id]));
    return { kind: "fetch", id: 1, range, limit: 0, reverse: false, trace: "" };
  }

  push(clock: number): Message {
    return { kind: "push", upTo: ++this.head, stable: clock, floor: clock, clock, rows: [], more: false };
  }
}

async function run(input: FanoutInput): Promise<FanoutResult> {
  const clock = new SteppedClock();
  const children = Array.from({ length: input.children }, (_, i) => new StubChild(i, i < input.interested));
  const byId = new Map(children.map((child) => [child.id, child]));
  let messages = 0;
  const tell = (child: StubChild, message: Message) => replica.receive(child.id, encodeMessage(message));
  const replica = await openReplica({
    site: "core",
    parent: null,
    tier: "root",
    url: "http://core",
    linkAddress: "core",
    capacityBytes: 2 ** 30,
  }, {
    clock,
    random: { bytes: (length) => new Uint8Array(length) },
    storage: new MemoryStorage(),
    network: {
      send: (to, bytes) => {
        messages++;
        const child = byId.get(to);
        if (child !== undefined && !child.joined) {
          const message = decodeMessage(bytes);
          if (message.kind === "welcome") queueMicrotask(() => tell(child, child.fetch()));
          if (message.kind === "fetched") child.joined = true;
        }
        return Promise.resolve();
      },
    },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  const tick = async () => {
    clock.step();
    const now = clock.nowMs();
    for (let i = now % MARK_IDLE_MS; i < children.length; i += MARK_IDLE_MS) {
      const child = children[i];
      if (child?.joined) tell(child, child.push((now - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS));
    }
    // The pump's turn, its commit, and what follows from them.
    for (let i = 0; i < 3; i++) await clock.turn();
  };
  for (const child of children) {
    replica.connected(child.id, "child");
    tell(child, child.hello());
  }
  for (let ms = 0; children.some((child) => !child.joined); ms++) {
    if (ms > 60_000) throw new Error("the children did not join");
    await tick();
  }
  const value = new Uint8Array(1024);
  let written = 0;
  const phase = async (writesPerMs: number) => {
    const before = cpuUsage(), messagesBefore = messages;
    for (let ms = 0; ms < input.phaseMs; ms++) {
      for (let i = 0; i < writesPerMs; i++) {
        // 1,000 rows that are overwritten again and again.
        const key = packKey(["a", "load", "hot", written++ % 1000]);
        await replica.system.write([{ kind: "set", key, value }]);
      }
      await tick();
    }
    const { user, system } = cpuUsage(before);
    return { micros: user + system, messages: messages - messagesBefore };
  };
  await phase(input.writesPerMs); // warms the compiler
  const idle = await phase(0), busy = await phase(input.writesPerMs), idleAgain = await phase(0);
  await replica.close();
  const idleMicros = (idle.micros + idleAgain.micros) / 2;
  const idleMessages = (idle.messages + idleAgain.messages) / 2;
  const writes = input.phaseMs * input.writesPerMs;
  return {
    microsPerWrite: (busy.micros - idleMicros) / writes,
    microsPerChildSecond: idleMicros / (input.children * input.phaseMs / 1000),
    messagesPerWrite: (busy.messages - idleMessages) / writes,
  };
}

if (import.meta.main) freshAnswer(await run(freshInput() as FanoutInput));
