/**
 * A rehearsal for an isolate that waits: a session of the bootstrap's own is asked, and opened again from its
 * checkpoint and log. So the code of an opening is compiled when the first real one comes, which takes a third of the
 * processor's time then. It is done in one macrotask: a session that is opened meanwhile waits some 10 ms.
 *
 * RE1  Nothing of it leaves. It has a turn loop of its own, and of the app runs nothing but the tracked structures that
 *      its bundle brings.
 */
import { encodeCall } from "../../../functions/calls/call.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import type { Checkpoint, Commit, OpenSession } from "../../../functions/sessions/turn/mod.ts";
import { TurnLoop } from "../../../functions/sessions/turn/turn_loop.ts";
import { KIND_BYTE, partOfByte } from "../../../functions/tracked/part.ts";
import type { TrackedBytes, TrackedList, TrackedMap } from "../../../functions/tracked/structures.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { FrameWriter } from "../frame_writer.ts";
import { drainTasks, nowMs } from "./stateful_core.ts";
import { FrameSink } from "./stateful_sink.ts";

/** Number of turns, enough for V8 to keep what it has found out about the code of the log's turns. */
const TURNS = 20;
const ITEMS = 40;
const CHANNEL = 1;
const OPEN: OpenSession = {
  ...{ class: "rehearsal", id: "", epoch: 1, replica: 1, code: "", seed: new Uint8Array(32) },
  ...{ checkpoint: null, entries: new Uint8Array(), out: {}, effectsApplied: 0 },
};

class Rehearsed {
  bytes = partOfByte(KIND_BYTE.bytes) as unknown as TrackedBytes;
  map = partOfByte(KIND_BYTE.map) as unknown as TrackedMap<string, unknown>;
  list = partOfByte(KIND_BYTE.list) as unknown as TrackedList<unknown>;
  plain: unknown[] = [];
  count = 0;

  step(): number {
    this.bytes.resize(this.bytes.length + ITEMS);
    for (let i = 0; i < ITEMS; i++) this.bytes.put(this.bytes.length - 1 - i, i);
    this.map.set(`key ${this.count % ITEMS}`, { count: this.count, tags: ["a"] });
    this.list.push({ count: this.count });
    this.plain = [this.map.get("key 1"), this.list.at(0)];
    return ++this.count;
  }
}

/** A session in a loop of its own. */
class Rehearsal {
  readonly commits: Commit[] = [];
  readonly checkpoints: Checkpoint[] = [];
  readonly #loop: TurnLoop;
  #due: (() => void)[] = [];
  #asked = 0;

  constructor(open: OpenSession) {
    const nowhere = new FrameWriter({
      read: () => Promise.resolve(null),
      write: (bytes) => Promise.resolve(bytes.length),
    }, () => {});
    const frames = new FrameSink(nowhere);
    this.#loop = new TurnLoop({
      sink: {
        opened: (channel, opened) => frames.opened(channel, opened),
        commit: (channel, commit) => {
          this.commits.push(commit);
          frames.commit(channel, commit);
        },
        call: () => {},
        dropped: () => {},
        checkpoint: (channel, checkpoint) => {
          this.checkpoints.push(checkpoint);
          frames.checkpoint(channel, checkpoint);
        },
        parked: (_, { message }) => {
          throw new Error(`a rehearsal was parked: ${message}`);
        },
        log: () => {},
      },
      ...{
        nowMs,
        drain: drainTasks,
        storeClock: (least) => least + 1,
        after: () => () => {},
        mark: () => {},
      },
      schedule: (callback) => void this.#due.push(callback),
      make: () => new Rehearsed() as SessionObject,
      envOf: () => null,
    });
    this.#loop.open(CHANNEL, open);
    this.#run();
  }

  ask(): void {
    const number = ++this.#asked;
    const bytes = encodeCall({ kind: "rpc", method: "step", args: encodeValue([]) });
    const request = `request ${number}`;
    this.#loop.deliver(CHANNEL, { kind: "request", request, chain: [], bytes, number, storeClock: 1 });
    this.#run();
    this.#loop.acknowledge(CHANNEL, { outputs: { [request]: 1 }, effects: 0 });
  }

  checkpoint(): void {
    this.#loop.checkpointNow(CHANNEL);
    this.#run();
  }

  #run(): void {
    for (let next = this.#due.shift(); next !== undefined; next = this.#due.shift()) next();
  }
}

/** Runs the rehearsal. @throws Error where its result is not what it should be. */
export function rehearse(): void {
  const first = new Rehearsal(OPEN);
  for (let i = 0; i < TURNS; i++) first.ask();
  first.checkpoint();
  for (let i = 0; i < TURNS; i++) first.ask();
  const [checkpoint] = first.checkpoints;
  if (checkpoint === undefined) throw new Error("a rehearsal has no checkpoint");
  const entries = first.commits.filter(({ first }) => first > checkpoint.at).flatMap((
    { entries },
  ) => [...entries]);
  const again = new Rehearsal({ ...OPEN, checkpoint, entries: Uint8Array.from(entries) });
  again.ask();
  if (again.commits.length !== 1) throw new Error("a rehearsal was not opened again");
}
