/**
 * Requests of one stateful session that are running, and answers that are kept for callers that ask again.
 *
 * Life of a request: new → running → answered, when its commit is appended → may leave, when that is held → kept over
 * checkpoints until it was received or is old → past: only its id is known → forgotten, when 1,024 later ones are past.
 *
 * R1  A request that is running, answered or past is never new again.
 * R2  An answer leaves only when its commit, and all before it, are held.
 *     Where there is no room for answers (answer_room.ts, M2) a new one is refused before it is running.
 * R4  An answer to another stateful session is kept longer (limits.ts): that session asks again when it has a home
 *     again.
 * R3  A request that runs when the home ends was not run, as far as anybody outside can tell: another home may run it.
 */
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { AnswerRoom, Roomed } from "./answer_room.ts";
import { type Asked, HomeError, type LoggedAnswer } from "../log/api.ts";
import {
  ANSWER_KEPT_MS,
  ANSWERS_BYTES_MAX,
  CALLER_ANSWER_KEPT_MS,
  CALLER_ANSWERS_MAX,
  PAST_REQUESTS_MAX,
  REQUEST_BYTES_MAX,
} from "../log/limits.ts";
import { isText } from "../log/name.ts";

interface KeptAnswer extends Roomed {
  /** Last entry of the answer's commit. */
  readonly at: number;
  isReceived: boolean;
}

/** Requests and answers of one session (see the file's header). */
export class Answers {
  readonly #nowMs: () => number;
  readonly #room: AnswerRoom;
  /** Requests that run; null while there are none. The same goes for the next two that may be null. */
  #running: Map<string, PromiseWithResolvers<Uint8Array>> | null = null;
  /** Answers that are kept, oldest first. */
  readonly #kept = new Map<string, KeptAnswer>();
  /** Kept answers that may not leave yet. */
  #unheld: Set<KeptAnswer> | null = null;
  readonly #past = new Set<string>();
  /** Promises of answers that may not leave yet, by request. */
  #waiting: Map<string, PromiseWithResolvers<Uint8Array>> | null = null;
  #bytes = 0;
  #held = 0;

  constructor(nowMs: () => number, room: AnswerRoom) {
    this.#nowMs = nowMs;
    this.#room = room;
  }

  /** Takes answers as a checkpoint had them. @throws CodecError */
  restore(bytes: Uint8Array, at: number): void {
    const r = new Reader(bytes);
    for (const id of r.list(() => r.text())) this.#past.add(id);
    const kept = r.list(() => ({ request: r.text(), bytes: r.bytes() }));
    r.end();
    this.answered(kept, at);
  }

  /**
   * Registers a request.
   *
   * @param isBegun true where its handler runs already: it is not refused for want of room.
   * @throws HomeError `limit_stateful`, `overloaded`
   */
  ask(request: string, isBegun = false): Asked {
    if (!isText(request, REQUEST_BYTES_MAX)) {
      throw new HomeError(
        "limit_stateful",
        `cannot take a request with the id ${
          JSON.stringify(request.slice(0, 2 * REQUEST_BYTES_MAX))
        }: an id has 1 ` +
          `to ${REQUEST_BYTES_MAX} bytes of UTF-8`,
      );
    }
    if (this.#past.has(request)) return { kind: "past" }; // R1
    const kept = this.#kept.get(request);
    if (kept !== undefined) return { kind: "known", answer: this.#whenHeld(request, kept) };
    const running = this.#running?.get(request);
    if (running !== undefined) return { kind: "known", answer: running.promise }; // R1
    if (!isBegun) this.#room.checkFor(`run the request ${request}`);
    (this.#running ??= new Map()).set(request, quiet());
    return { kind: "new" };
  }

  dropped(request: string): void {
    this.#takeRunning(request)?.reject(
      new HomeError("stateful_unreachable", `the request ${request} was not run; ask again`),
    );
  }

  received(request: string): void {
    const kept = this.#kept.get(request);
    if (kept === undefined) return;
    kept.isReceived = true;
    this.#room.received(kept);
  }

  /** Keeps the answers of a commit, appended, that ends with the entry `at`. */
  answered(answers: readonly LoggedAnswer[], at: number): void {
    for (const { request, bytes } of answers) {
      this.#forget(request);
      const pass = () => this.#pass(request);
      const kept = { bytes, at, atMs: this.#nowMs(), isReceived: false, pass };
      this.#kept.set(request, kept);
      (this.#unheld ??= new Set()).add(kept);
      this.#room.add(kept);
      this.#bytes += bytes.length;
      const running = this.#takeRunning(request);
      if (running !== undefined) (this.#waiting ??= new Map()).set(request, running);
    }
    this.held(this.#held);
  }

  /** Lets answers leave: entries up to `through` are held (R2). */
  held(through: number): void {
    this.#held = Math.max(this.#held, through);
    for (const [request, waiting] of this.#waiting ?? []) {
      const kept = this.#kept.get(request);
      if (kept === undefined || kept.at > this.#held) continue;
      this.#waiting?.delete(request);
      waiting.resolve(kept.bytes);
    }
    if (this.#waiting?.size === 0) this.#waiting = null;
    for (const kept of this.#unheld ?? []) {
      if (kept.at > this.#held) break;
      this.#unheld?.delete(kept);
      this.#room.held(kept);
    }
    if (this.#unheld?.size === 0) this.#unheld = null;
    for (const [request, kept] of this.#kept) {
      if (this.#bytes <= ANSWERS_BYTES_MAX || kept.at > this.#held) break;
      this.#pass(request);
    }
  }

  /** Returns the answers that a checkpoint after the entry `at` takes along; the others up to there are past. */
  checkpoint(at: number): Uint8Array {
    const nowMs = this.#nowMs();
    const isLong = ([request, kept]: [string, KeptAnswer]) => !kept.isReceived && isOfSession(request);
    let tooMany = this.#kept.entries().filter(isLong).reduce((count) => count + 1, -CALLER_ANSWERS_MAX);
    for (const [request, kept] of this.#kept) {
      const keptMs = isLong([request, kept]) && --tooMany < 0 ? CALLER_ANSWER_KEPT_MS : ANSWER_KEPT_MS; // R4
      if (kept.at <= at && (kept.isReceived || kept.atMs < nowMs - keptMs)) this.#pass(request);
    }
    const kept = [...this.#kept].filter(([, one]) => one.at <= at);
    const w = new Writer(64);
    w.list([...this.#past], (id) => w.text(id));
    return w.list(kept, ([id, { bytes }]) => w.text(id).bytes(bytes)).done();
  }

  /** Ends all that runs with the home (R3). */
  end(error: HomeError): void {
    for (const { reject } of this.#running?.values() ?? []) reject(error);
    for (const { reject } of this.#waiting?.values() ?? []) reject(error);
    this.#running = this.#waiting = null;
    this.leave();
  }

  /** Leaves memory: nothing is asked or answered any more. */
  leave(): void {
    for (const kept of this.#kept.values()) this.#room.remove(kept);
  }

  #whenHeld(request: string, { at, bytes }: KeptAnswer): Promise<Uint8Array> {
    if (at <= this.#held) return Promise.resolve(bytes);
    const all = this.#waiting ??= new Map();
    const waiting = all.get(request) ?? quiet();
    all.set(request, waiting);
    return waiting.promise;
  }

  #takeRunning(request: string): PromiseWithResolvers<Uint8Array> | undefined {
    const running = this.#running?.get(request);
    if (this.#running?.delete(request) && this.#running.size === 0) this.#running = null;
    return running;
  }

  #pass(request: string): void {
    this.#forget(request);
    this.#past.add(request);
    for (const id of this.#past) {
      if (this.#past.size <= PAST_REQUESTS_MAX) break;
      this.#past.delete(id);
    }
  }

  #forget(request: string): void {
    const kept = this.#kept.get(request);
    if (kept === undefined) return;
    this.#bytes -= kept.bytes.length;
    this.#kept.delete(request);
    this.#unheld?.delete(kept);
    this.#room.remove(kept);
  }
}

/** Reports whether a stateful session sent the request: its calls have hashes for ids (docs/protocol/homes.md). */
const isOfSession = (request: string): boolean => SESSION_CALL.test(request);
const SESSION_CALL = /^[0-9a-f]{64}$/;

/** Returns a promise that may be rejected while nobody waits for it. */
function quiet(): PromiseWithResolvers<Uint8Array> {
  const made = Promise.withResolvers<Uint8Array>();
  made.promise.catch(() => {});
  return made;
}
