/**
 * What runs at a site for a request: attach with the tokens presented, a drawn program of reads and writes, and
 * the output gate, behind which every answer waits until all it depends on is on disk.
 */
import {
  type AttachedSession,
  type StoreMutation,
  StoreUnavailable,
  type TokenState,
} from "../../store/api/api.ts";
import { parseVersionstamp, type Row, versionstamp } from "../../store/model/row.ts";
import type { HistoryEvent, Seen, Written } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import type { Probes } from "./probes.ts";
import type { Running, SiteProcess, Stage } from "./site.ts";
import type { World } from "./world.ts";

/** One step of a program. */
export type Operation =
  | { readonly kind: "get"; readonly keys: readonly number[] }
  /** `limit` 0: all of the group. */
  | { readonly kind: "list"; readonly group: number; readonly limit: number; readonly reverse: boolean }
  /** `check`: on condition that the rows are still as a read before found them. */
  | { readonly kind: "write"; readonly writes: readonly Written[]; readonly check: boolean }
  | CallOperation;

/** Something above the replica is asked. */
export interface CallOperation {
  readonly kind: "call";
  /** Whom. */
  readonly class: string;
  readonly id: string;
  readonly what: string;
  /** Who asks again asks with the same. */
  readonly once: string;
}

/** The calls of one request. */
export interface RequestCalls {
  /** @throws with a `code` where there is no answer. */
  call(call: CallOperation): Promise<void>;
}

/** What a request does. */
export interface Program {
  readonly operations: readonly Operation[];
  /** How long the handler thinks after each operation. */
  readonly thinkMs: readonly number[];
  /** An answer begins, with an open token, after this operation; −1: only at the end. */
  readonly openAfter: number;
  /** All operations at once. */
  readonly isParallel: boolean;
}

/** How a request ended. */
export type Outcome = string;

/** What a handler is watched by, and whose time it spends. */
interface Surroundings {
  readonly world: World;
  readonly keyspace: Keyspace;
  readonly probes: Probes;
  readonly record: (event: HistoryEvent) => void;
  readonly counters: { issues: number };
}

/** A request in a process. */
export interface Execution {
  readonly process: SiteProcess;
  readonly running: Running;
  readonly request: number;
  readonly tokens: readonly TokenState[];
  readonly program: Program;
  /** A token leaves the site. */
  readonly issued: (state: TokenState, open: boolean) => void;
  /** More of the answer does, after an open token. */
  readonly sent: (chunk: number) => void;
  /** For the calls of its program. */
  readonly calls: ((session: AttachedSession) => RequestCalls) | null;
  readonly around: Surroundings;
}

/** About as long as a request and a handoff take, so that readers come before, at and after the end. */
const EXPIRES_MS = 150;

/** Runs a request to its end, or for ever where the process dies. */
export async function perform(execution: Execution): Promise<Outcome> {
  try {
    await new Handler(execution).run();
    return "ok";
  } catch (error) {
    if (error instanceof CallFailed) return `call: ${error.code}`;
    if (error instanceof StoreUnavailable) {
      // A site that stops cuts what still runs when its time is over, before its replica closes.
      return error.code === "closed" && execution.process.draining ? "crashed" : error.code;
    }
    return `fault: ${error instanceof Error ? error.stack ?? error.message : String(error)}`;
  }
}

/** A call was not answered. */
class CallFailed extends Error {
  constructor(readonly code: string) {
    super(`a call ends with ${code}`);
  }
}

class Handler {
  readonly #execution: Execution;
  #readings = 0;
  #calls: RequestCalls | null = null;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  async run(): Promise<void> {
    const { process, program, tokens, around, request } = this.#execution;
    await this.#step("waiting for the site", process.serving);
    // Several tokens at once, or one after the other, as who calls others gets theirs.
    const [first = null, ...others] = tokens, atOnce = others.length > 0 && request % 2 === 0;
    const attached = atOnce
      ? process.replica.attachAll(tokens)
      : Promise.try(() => process.replica.attach(first));
    const session = await this.#step("attaching", attached);
    around.probes.count(session.how);
    if (atOnce) around.probes.count("merged tokens");
    else for (const token of others) await this.#see(session, token);
    if (program.isParallel) {
      // One that is refused ends the request when the others have: what they write is the request's, too.
      const settled = await Promise.allSettled(
        program.operations.map((operation) => this.#operate(session, operation)),
      );
      for (const one of settled) if (one.status === "rejected") throw one.reason;
      return await this.#issue(session, false);
    }
    const isOpen = (i: number) => program.openAfter >= 0 && i > program.openAfter;
    for (const [i, operation] of program.operations.entries()) {
      await this.#operate(session, operation);
      if (isOpen(i)) await this.#send(session, i);
      const thinkMs = program.thinkMs[i] ?? 0;
      if (thinkMs > 0) await this.#step("thinking", around.world.sleep(thinkMs));
      if (program.openAfter === i) await this.#issue(session, true);
    }
    await this.#issue(session, false);
  }

  async #see(session: AttachedSession, token: TokenState): Promise<void> {
    await this.#step("attaching", session.see(token));
    this.#execution.around.probes.count("tokens seen one after the other");
  }

  async #operate(session: AttachedSession, operation: Operation): Promise<void> {
    // It may have been its token that was the last thing to leave the process.
    if (!this.#execution.process.alive) await new Promise<never>(() => {});
    if (operation.kind === "write") await this.#write(session, operation.writes, operation.check);
    else if (operation.kind === "call") await this.#call(session, operation);
    else if (operation.kind === "get") await this.#get(session, operation.keys);
    else await this.#list(session, operation);
  }

  async #issue(session: AttachedSession, open: boolean): Promise<void> {
    await this.#step("syncing", session.durable());
    this.#execution.issued(session.token(open), open);
  }

  /** What is called follows what the request has done so far, and the request what was answered. */
  async #call(session: AttachedSession, call: CallOperation): Promise<void> {
    const { around: { record, world, counters }, request, calls: make } = this.#execution;
    const calls = this.#calls ??= make?.(session) ?? null;
    if (calls === null) throw new Error("nothing is above the replicas that could be called");
    const lent = counters.issues++;
    const { once } = call;
    record({ kind: "lent", atMs: world.nowMs, request, issue: lent, once });
    await this.#step(
      "calling",
      calls.call(call).catch((error: unknown) => {
        const { code } = error as { readonly code?: unknown };
        if (typeof code !== "string") throw error;
        throw new CallFailed(code);
      }),
    );
    record({ kind: "answered", atMs: world.nowMs, request, once });
  }

  async #send(session: AttachedSession, chunk: number): Promise<void> {
    await this.#step("syncing", session.durable());
    this.#execution.around.probes.count("chunk after an open token");
    this.#execution.sent(chunk);
  }

  async #get(session: AttachedSession, keys: readonly number[]): Promise<readonly Seen[]> {
    const { keyspace } = this.#execution.around;
    const packed = keys.map((key) => keyspace.key(key));
    const reading = this.#begin();
    const rows = await this.#step("reading", session.get(packed));
    const seen = keys.map((key, i) => this.#seen(key, rows[i]));
    this.#recordRead(seen, reading);
    return seen;
  }

  async #list(
    session: AttachedSession,
    { group, limit, reverse }: Operation & { kind: "list" },
  ): Promise<void> {
    const { keyspace } = this.#execution.around;
    const found = keyspace.groups[group];
    if (found === undefined) return;
    const options = limit === 0 ? { reverse } : { limit, reverse };
    const reading = this.#begin();
    const rows = await this.#step("reading", session.list(found.range, options));
    const byKey = new Map(rows.map((row) => [row.key as string, row]));
    const ordered = [...found.keys].sort((a, b) => reverse ? b - a : a - b);
    const numbers = rows.map((row) => keyspace.number(row.key) ?? -1);
    const expected = ordered.filter((key) => byKey.has(keyspace.key(key)));
    if (numbers.join() !== expected.join() || limit > 0 && rows.length > limit) {
      throw new Error(`a list of ${ordered} with limit ${limit} brought ${numbers}`);
    }
    // A page that is full says nothing about what comes after it.
    const last = rows.length === limit && limit > 0 ? numbers.at(-1) ?? -1 : null;
    const told = last === null ? ordered : ordered.slice(0, ordered.indexOf(last) + 1);
    this.#recordRead(told.map((key) => this.#seen(key, byKey.get(keyspace.key(key)))), reading);
  }

  async #write(session: AttachedSession, writes: readonly Written[], check: boolean): Promise<void> {
    const { around, request } = this.#execution;
    const { keyspace, world, record } = around;
    const plain = writes.filter(({ what }) => what !== "sum").map(({ key }) => key);
    const checks = check && plain.length > 0 ? await this.#get(session, plain) : [];
    const mutations: StoreMutation[] = [];
    const made: Written[] = [];
    for (const written of writes) {
      const mutation = this.#mutation(written);
      if (mutation === null) continue;
      mutations.push(mutation);
      const { expiresAtMs } = { expiresAtMs: undefined, ...mutation };
      made.push(expiresAtMs === undefined ? written : { ...written, expiresAtMs });
    }
    if (made.length === 0) return;
    record({ kind: "write", atMs: world.nowMs, request, writes: made, checks });
    const conditions = checks.map((row) => ({
      key: keyspace.key(row.key),
      version: row.write === null ? null : parseVersionstamp(row.stamp),
    }));
    const result = await this.#step("writing", session.write(mutations, conditions));
    const stamp = result.ok ? versionstamp(result.version) : null;
    record({ kind: "wrote", atMs: world.nowMs, request, writes: made, stamp });
    around.probes.count(stamp === null ? "write: check failed" : "write");
  }

  #mutation({ write, key, what }: Written): StoreMutation | null {
    const { keyspace } = this.#execution.around;
    if (what === "delete") return { kind: "delete", key: keyspace.key(key) };
    if (what === "expiring") {
      const expiresAtMs = this.#execution.process.replica.nowMs() + EXPIRES_MS;
      return { kind: "set", key: keyspace.key(key), value: keyspace.value(write), expiresAtMs };
    }
    if (what === "set") return { kind: "set", key: keyspace.key(key), value: keyspace.value(write) };
    const value = keyspace.amount(key, write);
    return value === null ? null : { kind: "sum", key: keyspace.key(key), value };
  }

  /** A read begins: its number. */
  #begin(): number {
    const { around, request, process } = this.#execution;
    const reading = this.#readings++;
    const clockMs = process.replica.nowMs();
    around.record({ kind: "reading", atMs: around.world.nowMs, request, reading, clockMs });
    return reading;
  }

  #recordRead(rows: readonly Seen[], reading: number): void {
    const { around, request, process } = this.#execution;
    const clockMs = process.replica.nowMs(), aheadMs = process.clock.aheadMs(clockMs);
    around.record({ kind: "read", atMs: around.world.nowMs, request, rows, reading, clockMs, aheadMs });
  }

  #seen(key: number, row: Row | undefined): Seen {
    const { keyspace } = this.#execution.around;
    if (row === undefined) return keyspace.absent(key);
    const seen = keyspace.seen(row);
    if (seen?.key !== key) throw new Error(`key ${key} was asked for, and ${row.key} came`);
    return seen;
  }

  /** Waits for a step; where the process dies meanwhile, for ever: its promises may settle, but nobody hears. */
  async #step<T>(stage: Stage, promise: Promise<T>): Promise<T> {
    const { process, running } = this.#execution;
    running.stage = stage;
    const settled = await promise.then(
      (value) => ({ ok: true, value }) as const,
      (error: unknown) => ({ ok: false, error }) as const,
    );
    if (!process.alive) await new Promise<never>(() => {});
    if (settled.ok) return settled.value;
    throw settled.error;
  }
}
