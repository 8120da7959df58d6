/**
 * A home of one stateful session in virtual time, for games: players attach, say something, hear what is said to them;
 * the home is lost with everything that it had not yet kept, and the session opened again from checkpoint and log.
 *
 * G1  A player hears what a commit gave out only once that is kept. What is not kept when the home is lost is gone,
 *     messages too; players have to come again, as new connections.
 * G2  The session's clock and randomness are the recorded ones, as in an isolate.
 */
import type { KeptCheckpoint } from "../../../functions/sessions/turn/event.ts";
import type { Commit } from "../../../functions/sessions/turn/mod.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { stage } from "../../functions/sessions/turn/robot.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import { joined } from "../../functions/sessions/turn/entries.ts";
import { drain } from "../../functions/sessions/turn/drain.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";

const text = new TextDecoder();

/** See the file's header. */
export class GameHome {
  readonly #Class: new () => SessionObject;
  #solo: Solo;
  #taken = 0;
  #kept: Commit[] = [];
  #checkpoint: KeptCheckpoint | null = null;
  readonly #timers = new Map<string, number>();
  readonly #heard = new Map<string, string[]>();
  readonly #out = new Map<string, number>();
  #epoch = 1;
  #next = 1;
  nowMs = 1_800_000_000_000;
  isEnded = false;

  constructor(Class: new () => SessionObject) {
    this.#Class = Class;
    this.#solo = this.#opened();
  }

  #opened(): Solo {
    const solo = new Solo(this.#Class);
    solo.nowMs = this.nowMs;
    return solo.open({
      epoch: this.#epoch,
      checkpoint: this.#checkpoint,
      entries: joined(this.#after()),
      out: Object.fromEntries(this.#out),
    });
  }

  #after(): Commit[] {
    return this.#kept.filter(({ first }) => first > (this.#checkpoint?.at ?? 0));
  }

  /** A new connection; what it hears comes into the array. */
  attach(): { readonly id: string; readonly heard: string[] } {
    const id = `peer ${this.#next++}`;
    const heard: string[] = [];
    this.#heard.set(id, heard);
    this.#deliver({ kind: "attach", peer: { kind: "client", id } });
    return { id, heard };
  }

  say(id: string, message: unknown): void {
    const words = typeof message === "string" ? message : JSON.stringify(message);
    this.#deliver({ kind: "message", peer: id, message: words });
  }

  detach(id: string): void {
    this.#deliver({ kind: "detach", peer: id });
  }

  #deliver(event: Parameters<Solo["deliver"]>[0]): void {
    this.#solo.nowMs = this.nowMs;
    this.#solo.deliver(event);
  }

  /** Everything that was given out so far is on disks, and told. */
  keep(): void {
    const { commits, checkpoints, parked } = this.#solo;
    if (parked !== null) throw new Error(`the session was parked: ${parked.code}: ${parked.message}`);
    const outputs: Record<string, number> = {};
    for (const commit of commits.slice(this.#taken)) {
      this.#kept.push(commit);
      this.isEnded ||= commit.isEnded;
      for (const { name, dueMs } of commit.timers) {
        if (dueMs === null) this.#timers.delete(name);
        else this.#timers.set(name, dueMs);
      }
      for (const { to, sequence, bytes } of commit.outputs) {
        if (sequence <= (this.#out.get(to) ?? 0)) continue;
        this.#out.set(to, sequence);
        outputs[to] = sequence;
        this.#heard.get(to)?.push(text.decode(bytes.subarray(1)));
      }
    }
    this.#taken = commits.length;
    for (const { at, on, bytes, state } of checkpoints.splice(0)) {
      this.#checkpoint = {
        at,
        bytes,
        state: on === null ? state : [...this.#checkpoint?.state ?? [], ...state],
      };
    }
    this.#solo.loop.acknowledge(1, { outputs, effects: 0 });
    this.#solo.run();
  }

  /** Time passes, in steps; timers go off, and everything is kept after each step. */
  pass(ms: number, stepMs = 5): void {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.nowMs += stepMs;
      for (const [name, dueMs] of [...this.#timers]) {
        if (dueMs > this.nowMs) continue;
        this.#timers.delete(name);
        this.#deliver({ kind: "timer", name, dueMs });
      }
      this.keep();
    }
  }

  get timers(): string[] {
    return [...this.#timers.keys()];
  }

  /** The home is lost; another opens the session so much later. Old connections are gone after that. */
  lose(forMs: number): void {
    this.nowMs += forMs;
    this.#epoch++;
    this.#taken = 0;
    const gone = [...this.#heard.keys()];
    this.#heard.clear();
    this.#solo = this.#opened();
    this.#timers.clear();
    for (const { name, dueMs } of this.#solo.opened?.timers ?? []) {
      if (dueMs !== null) this.#timers.set(name, dueMs);
    }
    for (const id of gone) this.detach(id);
  }
}

/** Runs a test in a macrotask, with the clock and the randomness that app code has in an isolate (G2). */
export async function inHome(run: () => void): Promise<void> {
  const { now } = Date, { random } = Math;
  const program = () => stage.loop?.current;
  Date.now = () => program()?.now() ?? now();
  Math.random = () => program()?.random() ?? random();
  try {
    await inMacrotask(() => {
      run();
      drain();
    });
  } finally {
    Date.now = now;
    Math.random = random;
  }
}
