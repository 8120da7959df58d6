/**
 * One uninterrupted run of what is in a session's log: what each receiver is to have been sent, what each sender has
 * sent, what each request is answered, what is written, and what is asked of the server outside.
 *
 * A name may have had several of them, one after the other, one for each session that ended.
 *
 * It knows the words of the program (program.ts) and reads the bytes of calls and results; it shares nothing else with
 * what it is compared to: it has its own arithmetic, its own way through a log, and its own idea of a handler that waits.
 */
import { decodeAnswer, decodeCall } from "../../functions/calls/call.ts";
import {
  decodeCommitResult,
  decodeOutsideAnswer,
  decodeRows,
} from "../../functions/sessions/turn/call_bytes.ts";
import type { LogEntry } from "../../functions/sessions/turn/log_entry.ts";
import { decodeValue } from "../../functions/values/value.ts";
import { versionstamp } from "../../store/model/row.ts";

type Input = Extract<LogEntry, { kind: "turn" }>["input"];
/** What a handler that waits is given. */
type Given = Extract<Input, { kind: "result" | "error" | "local" }>;
type Handler = Generator<void, void, Given>;

/** A message as the log has it; null: its handler was undone for good, and the log does not say what it was. */
export type Logged = string | null;

/** Something that a handler asked of the server outside, and what that said; null: it was not reached. */
export interface Asked {
  readonly what: string;
  readonly answer: string | null;
}

/** A write with a check, and what it was told: under which version it was made (null: it was not), and what it has found. */
export interface Swapped {
  readonly value: string;
  readonly version: string | null;
  readonly was: string;
}

/** Something that a handler did with the rows that all share, or with other sessions. */
export type Step =
  | { readonly kind: "read"; readonly row: string; readonly value: string | null; readonly stamp: string }
  | { readonly kind: "write"; readonly op: string; readonly stamp: string }
  | { readonly kind: "asks" | "told"; readonly asked: string };

/** One handler that came to its end. */
export interface Act {
  /** The request, or null: nobody waits for its answer. */
  readonly request: string | null;
  readonly what: string;
  /** Entries of the log, from 0 on, with which it began and ended. */
  readonly first: number;
  last: number;
  readonly steps: (Step & { readonly at: number })[];
}

interface Attached {
  readonly kind: "client" | "origin";
  isClosed: boolean;
}

/** More entries than stand behind the one that begins a turn. */
const BEHIND_MAX = 8;
/** What stands in a log beside what happened. */
const OF_LOG: ReadonlySet<string> = new Set(["birth", "epoch", "rejected"]);
const KICKED = "kicked 4001 out";
const text = new TextDecoder(), utf8 = new TextEncoder();

/** 32 bits, by remainders: 33 times 32 bits are exact. */
function mixed(before: number, what: string): number {
  let hash = (before ^ 0x1f2e3d4c) >>> 0;
  for (const byte of utf8.encode(what)) hash = (((hash * 33) % 2 ** 32) ^ byte) >>> 0;
  return hash;
}

function resultOf(given: Given): Uint8Array {
  if (given.kind !== "result") throw new Error(`a handler went on with a ${given.kind}`);
  return given.bytes;
}

/** See the file's header. */
export class Ledger {
  /** What each peer was to be sent, in order; those that have gone, too. */
  readonly outputs = new Map<string, string[]>();
  readonly kinds = new Map<string, "client" | "origin">();
  readonly messages = new Map<string, Logged[]>();
  readonly attached = new Map<string, Attached>();
  readonly detached = new Set<string>();
  /** By request; each answer, also where there is more than one. */
  readonly answers = new Map<string, string[]>();
  readonly written: { readonly row: number; readonly value: string }[] = [];
  readonly acts: Act[] = [];
  /** Writes with checks, and requests outside: each that a handler, which may have been undone, has begun. */
  readonly swapped: Swapped[] = [];
  readonly posted: Asked[] = [];
  /** What it sent to queues. */
  readonly mailed: string[] = [];
  /** What it asked other sessions for, that it was told, and in the handler of what. */
  readonly called: { readonly asked: string; readonly told: string; readonly what: string }[] = [];
  /** How often the handler of something was undone when it had begun something: by what it was. */
  readonly undone = new Map<string, number>();
  rejections = 0;
  /** Named timers that are set, and were not called. */
  readonly timers = new Set<string>();
  /** Those before the handler that runs: what that one sets is nowhere but in the log until it ends. */
  #before: ReadonlySet<string> = new Set();
  readonly id: string;
  /** The session has called `end()`: nothing comes after the handler that did. */
  isEnded = false;
  #said = 0;
  #chain = 0;
  #seed = "";
  #isNamed = false;
  readonly #heard = new Map<string, number>();
  #handler: Handler | null = null;
  /** How often `soon` is set again. */
  #soon = 0;
  #waits: "result" | "local" | null = null;
  #act: Act | null = null;
  /** The entry that is taken, and the version of what its turn writes. */
  #at = 0;
  #stamp = "";

  /** @param id of the session. */
  constructor(id: string, entries: readonly LogEntry[]) {
    this.id = id;
    for (const { input, at } of kept(entries, this)) {
      this.#at = at;
      this.#stamp = stampOf(entries, at);
      this.#take(input);
    }
  }

  /** Timers that sites know of. */
  get due(): readonly string[] {
    return [...this.timers].filter((name) => this.#handler === null || this.#before.has(name));
  }

  #take(input: Input): void {
    if (this.isEnded && !OF_LOG.has(input.kind)) {
      throw new Error(`${input.kind} at ${this.#at}, after its end`);
    }
    switch (input.kind) {
      case "birth":
        this.#seed = input.seed.toHex();
        return;
      case "request":
        return this.#begin(this.#request(input.request, input.bytes), input.request, called(input.bytes));
      case "attach":
        return this.#attach(input.peer.id, input.peer.kind);
      case "message": {
        const { peer } = input, what = said(input) ?? "";
        this.messages.get(peer)?.push(what);
        this.#heard.set(peer, 1);
        return this.#begin(this.#obey(what, peer), null, what);
      }
      case "detach":
        return this.#detach(input.peer);
      case "timer":
        this.timers.delete(input.name);
        this.#acts(null, input.name);
        this.#all(`timer ${input.name}`);
        if (input.name.startsWith("alarm:")) {
          this.#note({ kind: "write", op: input.name.replace("alarm", "set"), stamp: this.#stamp });
        }
        this.#acted();
        if (input.name !== "soon" || this.#soon === 0) return;
        this.#soon--;
        this.timers.add(input.name);
        return;
      case "result":
      case "error":
      case "local":
        return this.#given(input);
      case "rejected":
        return this.#rejected(input);
    }
  }

  #begin(handler: Handler, request: string | null, what: string): void {
    if (this.#handler !== null) throw new Error(`a handler began at ${this.#at} while another ran`);
    this.#handler = handler;
    this.#before = new Set(this.timers);
    this.#acts(request, what);
    this.#goOn(handler.next());
  }

  #goOn({ done }: { readonly done?: boolean | undefined }): void {
    if (!done) return;
    this.#handler = null;
    this.#acted();
  }

  #acts(request: string | null, what: string): void {
    this.#act = { request, what, first: this.#at, last: this.#at, steps: [] };
  }

  #acted(): void {
    if (this.#act === null) return;
    this.#act.last = this.#at;
    this.acts.push(this.#act);
    this.#act = null;
  }

  #note(step: Step): void {
    this.#act?.steps.push({ ...step, at: this.#at });
  }

  #given(input: Given): void {
    const wanted = input.kind === "local" ? "local" : "result";
    if (this.#handler === null || this.#waits !== wanted) throw new Error(`nobody waits for a ${input.kind}`);
    this.#goOn(this.#handler.next(input));
  }

  #rejected({ attempt, subject, code, message }: Extract<Input, { kind: "rejected" }>): void {
    this.#handler = null;
    this.rejections++;
    if (attempt > 0 || subject === null) return;
    if (subject.kind === "message") this.messages.get(subject.id)?.push(null);
    if (subject.kind === "request") this.#answer(subject.id, `error ${code} ${message}`);
    if (subject.kind === "detach") this.#gone(subject.id);
    if (subject.kind === "timer") this.timers.delete(subject.id);
  }

  #answer(request: string, what: string): void {
    this.answers.set(request, [...this.answers.get(request) ?? [], what]);
  }

  *#request(request: string, bytes: Uint8Array): Handler {
    const what = called(bytes);
    yield* this.#obey(what, null);
    this.#answer(request, `value ${this.#link(what)}`);
  }

  #attach(peer: string, kind: "client" | "origin"): void {
    if (this.attached.has(peer)) throw new Error(`${peer} attached twice`);
    this.attached.set(peer, { kind, isClosed: false });
    this.kinds.set(peer, kind);
    this.outputs.set(peer, []);
    this.messages.set(peer, []);
    this.#give(peer, this.#link(`open ${peer}`));
  }

  #detach(peer: string): void {
    const own = this.attached.get(peer);
    if (own !== undefined) own.isClosed = true;
    this.#heard.delete(peer);
    this.#all(`close ${peer}`);
    this.#gone(peer);
  }

  #gone(peer: string): void {
    this.attached.delete(peer);
    this.detached.add(peer);
  }

  *#obey(what: string, from: string | null): Handler {
    for (const op of what.split(" ").slice(1)) yield* this.#do(op, what, from);
  }

  *#do(op: string, what: string, from: string | null): Handler {
    if (op === "echo" && from !== null) this.#give(from, this.#link(what));
    else if (op === "all") this.#all(what);
    else if (op === "quiet") this.#said++;
    else if (op === "tick" || op === "jolt") this.timers.add(op);
    else if (op === "soon") {
      this.#soon = 3;
      this.timers.add(op);
    } else if (op === "put") {
      const value = this.#link(`put ${what}`);
      this.written.push({ row: this.#said % 3, value });
    } else if (op.startsWith("alarm:")) this.timers.add(op);
    else if (op.startsWith("get:")) yield* this.#get(op.slice(4));
    else if (/^(set|del|sum):/.test(op)) this.#note({ kind: "write", op, stamp: this.#stamp });
    else if (op === "slow" || op === "long") yield* this.#wait("local");
    else if (op.startsWith("call:")) yield* this.#call(op.slice(5), what);
    else if (op === "swap") yield* this.#swap(what);
    else if (op === "post") yield* this.#post(what);
    else if (op === "mail") this.mailed.push(this.#link(`mail ${what}`));
    else if (op === "origin") {
      const origins = [...this.attached].filter(([, { kind, isClosed }]) => kind === "origin" && !isClosed);
      const [peer] = origins.at(-1) ?? [];
      if (peer !== undefined) this.#give(peer, this.#link(what));
    } else if (op === "kick" && from !== null) {
      this.#give(from, KICKED);
      const own = this.attached.get(from);
      if (own !== undefined) own.isClosed = true;
    } else if (op === "end") {
      this.isEnded = true;
      this.timers.clear();
    }
  }

  *#wait(kind: "result" | "local"): Generator<void, Given, Given> {
    this.#waits = kind;
    return yield;
  }

  *#swap(what: string): Handler {
    const value = this.#link(`swap ${what}`);
    const [row] = decodeRows(resultOf(yield* this.#wait("result")));
    const was = row === null || row === undefined ? "nothing" : text.decode(row.value.subarray(1));
    const done = decodeCommitResult(resultOf(yield* this.#wait("result")));
    this.swapped.push({ value, version: done.ok ? done.versionstamp : null, was });
    this.#link(`swapped ${done.ok} ${was}`);
  }

  *#get(row: string): Handler {
    const [found] = decodeRows(resultOf(yield* this.#wait("result")));
    const value = found?.value.toHex() ?? null, stamp = found?.versionstamp ?? "";
    this.#note({ kind: "read", row, value, stamp });
    this.#link(`got ${row} ${value === null ? "nothing" : `${value}@${stamp}`}`);
  }

  *#call(target: string, what: string): Handler {
    this.#link(`call ${target} for ${what}`);
    const asked = `${this.id}!c${this.#said}.${this.#chain}`;
    this.#note({ kind: "asks", asked });
    const came = yield* this.#wait("result");
    let told: string;
    if (came.kind === "error") told = `failed: ${came.code}`;
    else {
      const answer = decodeAnswer(resultOf(came));
      told = answer.kind === "value" ? `${decodeValue(answer.value)}` : `failed: ${answer.kind}`;
      if (answer.kind === "value") this.#note({ kind: "told", asked });
    }
    this.called.push({ asked, told, what });
    this.#link(`told ${told}`);
  }

  *#post(what: string): Handler {
    const asked = this.#link(`post ${what}`);
    const came = yield* this.#wait("result");
    const answer = came.kind === "error"
      ? `failed: ${came.code}`
      : text.decode(decodeOutsideAnswer(resultOf(came)).answer);
    this.posted.push({ what: asked, answer: came.kind === "error" ? null : answer });
    this.#link(`said ${answer}`);
  }

  #all(why: string): void {
    const link = this.#link(why);
    for (const [peer, { kind }] of this.attached) if (kind === "client") this.#give(peer, link);
  }

  #give(peer: string, what: string): void {
    if (this.attached.get(peer)?.isClosed === false) this.outputs.get(peer)?.push(what);
  }

  #link(why: string): string {
    if (!this.#isNamed) this.#chain = mixed(this.#chain, this.#seed);
    this.#isNamed = true;
    this.#chain = mixed(this.#chain, why);
    return `${++this.#said}:${this.#chain}:${this.#heard.size}:${why}`;
  }
}

/** The version of what a turn writes: its clock stands behind the entry that begins it, the writer in the epoch before. */
function stampOf(entries: readonly LogEntry[], at: number): string {
  const next = entries.slice(at + 1, at + 1 + BEHIND_MAX).find((entry) =>
    entry.kind === "effect" || entry.kind === "turn"
  );
  if (next?.kind !== "effect") return "";
  const epoch = entries.findLast((entry, i) =>
    i <= at && entry.kind === "turn" && entry.input.kind === "epoch"
  );
  const replica = epoch?.kind === "turn" && epoch.input.kind === "epoch" ? epoch.input.replica : 0;
  return versionstamp({ clock: next.clock, replica });
}

/** The inputs that count: what a later rejection voids has not happened. */
function kept(
  entries: readonly LogEntry[],
  ledger: Ledger,
): { readonly input: Input; readonly at: number }[] {
  const all: (Input | null)[] = [], places: number[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.kind === "turn" && entry.input.kind === "rejected" && entry.input.voids > 0) {
      if (entry.input.voids > all.length) throw new Error("more is voided than there is");
      places.length -= entry.input.voids;
      for (const input of all.splice(all.length - entry.input.voids)) {
        const what = input === null ? null : said(input);
        if (what !== null) ledger.undone.set(what, (ledger.undone.get(what) ?? 0) + 1);
      }
    }
    all.push(entry.kind === "turn" ? entry.input : null);
    places.push(at);
  }
  return all.flatMap((input, i) => input === null ? [] : [{ input, at: places[i] ?? 0 }]);
}

/** What a message or a request says. */
function said(input: Input): string | null {
  if (input.kind === "request") return called(input.bytes);
  if (input.kind !== "message") return null;
  return typeof input.message === "string" ? input.message : text.decode(input.message);
}

function called(bytes: Uint8Array): string {
  const call = decodeCall(bytes);
  if (call.kind !== "rpc") throw new Error("requests call a method");
  const [what] = decodeValue(call.args) as [string];
  return what;
}
