/**
 * Outbox of a session: what it has made and not given out, and what it has given out and nobody has acknowledged.
 *
 * OB1  What was made since the last commit point leaves with the next one, or never.
 * OB2  What left is kept until it is acknowledged: answers up to the limits, the oldest let go first; outputs to a peer
 *      until the peer has gone (how much that may be is for the home to say: it detaches a peer that is too slow).
 */
import type { Acknowledged, Call, Effect, Output, TimerChange } from "./commit.ts";
import type { BegunEvent, OpenSession } from "./event.ts";

/**
 * Limits of answers that are kept without an acknowledgement; the oldest are let go: the home no longer knows a caller
 * that asks again that much later.
 */
const KEPT_ANSWERS_MAX = 1024;
const KEPT_ANSWER_BYTES_MAX = 1024 * 1024;

/** Outputs, effects and timers that leave at a commit point. */
export interface Leaving {
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly timers: readonly TimerChange[];
}

/** Things that a handler makes besides calls. Whoever is given these arrays may keep and change them. */
export interface Made {
  readonly outputs: Output[];
  readonly effects: Effect[];
  readonly timers: TimerChange[];
  /** Ids of peers that have gone. */
  readonly left: string[];
}

/** Things that a log says were made (recovery.ts). */
interface Regained {
  /** Outputs and effects of the log's checkpoint; null: it has none. */
  readonly parts: Pick<Leaving, "outputs" | "effects"> | null;
  /** Changes that were made up to the last commit point (`given`), and after it (`pending`). */
  readonly given: Leaving;
  readonly pending: Made;
  /** Ids of peers that have gone. */
  readonly left: readonly string[];
}

const NONE = Object.freeze([]) as unknown as never[];
const NOTHING: Leaving = { outputs: NONE, effects: NONE, timers: NONE };

/** The program that knows which outputs are for peers: the others are answers. */
interface Addressees {
  readonly program: { readonly peers: { has(id: string): boolean } };
}

/** See the file's header. */
export class Outbox {
  readonly #logged: Addressees;
  #outputs: Output[] = NONE;
  #effects: Effect[] = NONE;
  #timers: TimerChange[] = NONE;
  #left: string[] = NONE;
  /** Calls with an effect that wait for their intent to be given out. */
  #intents: Call[] = NONE;
  readonly #answers = new Map<string, Output>();
  #answerBytes = 0;
  /** Outputs to each peer, oldest first; null: there was none. */
  #toPeers: Map<string, Output[]> | null = null;
  #keptEffects: Effect[] = [];

  constructor(logged: Addressees) {
    this.#logged = logged;
  }

  /** Outputs and effects that were given out and not acknowledged. */
  get kept(): { readonly outputs: readonly Output[]; readonly effects: readonly Effect[] } {
    return {
      outputs: [...this.#answers.values(), ...[...this.#toPeers?.values() ?? []].flat()],
      effects: this.#keptEffects,
    };
  }

  /** Outputs that were made since the last commit point. */
  get made(): readonly Output[] {
    return this.#outputs;
  }

  /** Reports whether the answer to a request is kept. */
  hasAnswered(event: BegunEvent): boolean {
    return event.kind === "request" && this.#answers.has(event.request);
  }

  get hasIntents(): boolean {
    return this.#intents.length > 0;
  }

  add({ outputs, effects, timers, left }: Made): void {
    this.#outputs = joined(this.#outputs, outputs);
    this.#effects = joined(this.#effects, effects);
    this.#timers = joined(this.#timers, timers);
    this.#left = joined(this.#left, left);
  }

  addIntent(call: Call): void {
    this.#intents = joined(this.#intents, [call]);
  }

  /** Drops what was made since the last commit point: the handler was rejected, and nothing of it leaves. */
  drop(): void {
    this.#outputs = NONE;
    this.#effects = NONE;
    this.#timers = NONE;
    this.#left = NONE;
    this.#intents = NONE;
  }

  takeIntents(): readonly Call[] {
    const intents = this.#intents;
    this.#intents = NONE;
    return intents;
  }

  /** Takes all that was made, which leaves now; nothing where this is no commit point (OB1, commit.ts CM2). */
  take(isPoint: boolean): Leaving {
    if (!isPoint) return NOTHING;
    const made = { outputs: this.#outputs, effects: this.#effects, timers: this.#timers };
    this.#outputs = this.#effects = this.#timers = NONE;
    return made;
  }

  /** Keeps what is about to leave until it is acknowledged (OB2). */
  keep(): void {
    this.keepAll(this.#outputs, this.#effects); // commit.ts CM4
    for (const peer of this.#left) this.#toPeers?.delete(peer);
    this.#left = NONE;
  }

  keepAll(outputs: readonly Output[], effects: readonly Effect[]): void {
    for (const output of outputs) {
      const toPeer = this.#toPeers?.get(output.to);
      if (toPeer !== undefined) toPeer.push(output);
      else if (this.#logged.program.peers.has(output.to)) {
        (this.#toPeers ??= new Map()).set(output.to, [output]);
      } else this.#keepAnswer(output);
    }
    for (const effect of effects) this.#keptEffects.push(effect);
  }

  /**
   * Fills the outbox after a recovery: with what the log has given out and is not known to be out (`out`,
   * `effectsApplied`), and what its open handler has made.
   */
  recovered(
    { parts, given, left, pending }: Regained,
    { out, effectsApplied }: Pick<OpenSession, "out" | "effectsApplied">,
  ): void {
    const gone = new Set(left);
    this.keepAll(
      [...parts?.outputs ?? [], ...given.outputs].filter(({ to }) => !gone.has(to)),
      [...parts?.effects ?? [], ...given.effects],
    );
    this.acknowledge({ outputs: out, effects: effectsApplied });
    this.add(pending);
  }

  acknowledge({ outputs, effects }: Acknowledged): void {
    for (const to of Object.keys(outputs)) {
      this.#forgetAnswer(to);
      const toPeer = this.#toPeers?.get(to), through = outputs[to];
      if (toPeer === undefined || through === undefined) continue;
      const first = toPeer.findIndex(({ sequence }) => sequence > through);
      if (first < 0) this.#toPeers?.delete(to);
      else toPeer.splice(0, first);
    }
    if (this.#keptEffects.length > 0) {
      this.#keptEffects = this.#keptEffects.filter(({ effect }) => effect > effects);
    }
  }

  #keepAnswer(output: Output): void {
    this.#forgetAnswer(output.to);
    this.#answers.set(output.to, output);
    this.#answerBytes += output.bytes.length;
    if (!this.#isFull) return;
    for (const to of this.#answers.keys()) {
      this.#forgetAnswer(to);
      if (!this.#isFull) return;
    }
  }

  get #isFull(): boolean {
    return this.#answers.size > KEPT_ANSWERS_MAX || this.#answerBytes > KEPT_ANSWER_BYTES_MAX;
  }

  #forgetAnswer(to: string): void {
    const answer = this.#answers.get(to);
    if (answer === undefined) return;
    this.#answerBytes -= answer.bytes.length;
    this.#answers.delete(to);
  }
}

/** Appends items. Mostly there was nothing before, and the array of what was made is taken as it is. */
function joined<T>(before: T[], more: T[]): T[] {
  if (before.length === 0) return more;
  if (more.length > 0) before.push(...more);
  return before;
}
