/**
 * What a session has made and not given out, and what it has given out and nobody has acknowledged.
 *
 * OB1  What was made since the last commit point leaves with the next one, or never.
 * OB2  What left is kept until it is acknowledged: answers up to the limits, the oldest let go first; what peers were
 *      sent until they have gone (how much that may be is for their home to say: it detaches who is too slow).
 */
import type { Acknowledged, Call, Effect, Output, TimerChange } from "./commit.ts";
import type { BegunEvent, OpenSession } from "./event.ts";

/** What nobody acknowledges is let go: a caller that asks again this much later is not known any more. */
const KEPT_ANSWERS_MAX = 1024;
const KEPT_ANSWER_BYTES_MAX = 1024 * 1024;

/** What leaves at a commit point. */
export interface Leaving {
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly timers: readonly TimerChange[];
}

/** What a handler makes besides calls: arrays of which whoever is given them may make his own. */
export interface Made {
  readonly outputs: Output[];
  readonly effects: Effect[];
  readonly timers: TimerChange[];
  /** Peers that have gone. */
  readonly left: string[];
}

/** What a log says that was made (recovery.ts). */
interface Regained {
  /** Of its checkpoint. */
  readonly parts: Pick<Leaving, "outputs" | "effects"> | null;
  /** Up to the last commit point, and after it. */
  readonly given: Leaving;
  readonly pending: Made;
  /** Peers that have gone. */
  readonly left: readonly string[];
}

const NONE = Object.freeze([]) as unknown as never[];
const NOTHING: Leaving = { outputs: NONE, effects: NONE, timers: NONE };

/** Who knows which outputs are for peers: the others are answers. */
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
  /** By peer, oldest first; null: there was none. */
  #toPeers: Map<string, Output[]> | null = null;
  #keptEffects: Effect[] = [];

  constructor(logged: Addressees) {
    this.#logged = logged;
  }

  /** Given out and not acknowledged. */
  get kept(): { readonly outputs: readonly Output[]; readonly effects: readonly Effect[] } {
    return {
      outputs: [...this.#answers.values(), ...[...this.#toPeers?.values() ?? []].flat()],
      effects: this.#keptEffects,
    };
  }

  /** Made since the last commit point. */
  get made(): readonly Output[] {
    return this.#outputs;
  }

  /** A request whose answer is kept. */
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

  /** The handler was rejected: nothing of it leaves. */
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

  /** All that was made leaves, and is kept; nothing where this is no commit point (OB1, commit.ts CM2). */
  take(isPoint: boolean): Leaving {
    if (!isPoint) return NOTHING;
    const made = { outputs: this.#outputs, effects: this.#effects, timers: this.#timers };
    this.#outputs = this.#effects = this.#timers = NONE;
    return made;
  }

  /** What is about to leave is kept (OB2). */
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

  /** What a log has given out that may not be known (`out`, `effectsApplied`), and what its open handler has made. */
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

/** Mostly there was nothing before, and what was made is taken as it is. */
function joined<T>(before: T[], more: T[]): T[] {
  if (before.length === 0) return more;
  if (more.length > 0) before.push(...more);
  return before;
}
