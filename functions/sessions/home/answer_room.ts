/**
 * Room for answers: the memory that all answers kept at a site have together (answers.ts).
 *
 * Life of an answer here: added, when it is appended → held → received, perhaps → gone: its session drops it, or this
 * does, to make room.
 *
 * M1  An answer is dropped to make room only when it is held and was received, or was kept for as long as is promised:
 *     nobody asks for it again who would not have heard `past` anyway.
 * M2  Where that is not enough the room is full: until it is not, nothing new is run, and nothing is opened, which
 *     would bring its answers along.
 */
import { HomeError } from "../log/api.ts";
import { ANSWER_KEPT_MS } from "../log/limits.ts";

/** Answer, as its room has it. */
export interface Roomed {
  readonly bytes: Uint8Array;
  /** Time at which it was added. */
  readonly atMs: number;
  /** Drops the answer: only its request's id is known from then on. */
  readonly pass: () => void;
}

/** Room for answers (see the file's header). */
export class AnswerRoom {
  readonly #bytesMax: number;
  readonly #nowMs: () => number;
  /** Answers that are not held yet. Each answer is in one of these three sets, the oldest first. */
  readonly #unheld = new Set<Roomed>();
  readonly #held = new Set<Roomed>();
  readonly #received = new Set<Roomed>();
  #bytes = 0;

  constructor({ nowMs, bytesMax }: { readonly nowMs: () => number; readonly bytesMax: number }) {
    this.#nowMs = nowMs;
    this.#bytesMax = bytesMax;
  }

  /** Checks that there is room, for what is to be done (M2). @throws HomeError `overloaded` */
  checkFor(what: string): void {
    this.#makeRoom();
    if (this.#bytes <= this.#bytesMax) return;
    throw new HomeError(
      "overloaded",
      `cannot ${what}: the answers that this site keeps for those who did not hear them have ${this.#bytes} bytes, ` +
        `more than ${this.#bytesMax}; ask again`,
    );
  }

  add(answer: Roomed): void {
    this.#unheld.add(answer);
    this.#bytes += answer.bytes.length;
  }

  /** Notes that an answer is held: it may leave, and so it may be dropped. */
  held(answer: Roomed): void {
    if (this.#unheld.delete(answer)) this.#held.add(answer);
    this.#makeRoom();
  }

  received(answer: Roomed): void {
    if (this.#held.delete(answer)) this.#received.add(answer);
    this.#makeRoom();
  }

  remove(answer: Roomed): void {
    const isHere = this.#unheld.delete(answer) || this.#held.delete(answer) || this.#received.delete(answer);
    if (isHere) this.#bytes -= answer.bytes.length;
  }

  /** Drops answers until the others fit (M1). */
  #makeRoom(): void {
    if (this.#bytes <= this.#bytesMax) return;
    for (const answer of this.#received) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#drop(answer);
    }
    const oldestMs = this.#nowMs() - ANSWER_KEPT_MS;
    for (const answer of this.#held) {
      if (this.#bytes <= this.#bytesMax || answer.atMs >= oldestMs) return;
      this.#drop(answer);
    }
  }

  #drop(answer: Roomed): void {
    this.remove(answer);
    answer.pass();
  }
}
