/**
 * What a session has made and not given out, and what it has given out and nobody has acknowledged.
 *
 * OB1  What was made since the last commit point leaves with the next one, or never.
 * OB2  What left is kept until it is acknowledged, oldest first let go beyond the limits.
 */
import type { Acknowledged, Call, Effect, Output, TimerChange } from "./commit.ts";

/** What nobody acknowledges is let go: a caller that asks again this much later is not known any more. */
const KEPT_OUTPUTS_MAX = 1024;
const KEPT_OUTPUT_BYTES_MAX = 1024 * 1024;

/** What a handler makes besides calls. */
export interface Made {
  readonly outputs: readonly Output[];
  readonly effects: readonly Effect[];
  readonly timers: readonly TimerChange[];
}

/** See the file's header. */
export class Outbox {
  #outputs: Output[] = [];
  #effects: Effect[] = [];
  #timers: TimerChange[] = [];
  /** Calls with an effect that wait for their intent to be given out. */
  #intents: Call[] = [];
  #kept: Output[] = [];
  #keptBytes = 0;
  #keptEffects: Effect[] = [];

  /** Given out and not acknowledged. */
  get kept(): { readonly outputs: readonly Output[]; readonly effects: readonly Effect[] } {
    return { outputs: this.#kept, effects: this.#keptEffects };
  }

  get hasIntents(): boolean {
    return this.#intents.length > 0;
  }

  add({ outputs, effects, timers }: Made): void {
    if (outputs.length > 0) this.#outputs.push(...outputs);
    if (effects.length > 0) this.#effects.push(...effects);
    if (timers.length > 0) this.#timers.push(...timers);
  }

  addIntent(call: Call): void {
    this.#intents.push(call);
  }

  /** The handler was rejected: nothing of it leaves. */
  drop(): void {
    this.#outputs = [];
    this.#effects = [];
    this.#timers = [];
    this.#intents = [];
  }

  takeIntents(): readonly Call[] {
    const intents = this.#intents;
    this.#intents = [];
    return intents;
  }

  /** All that was made leaves, and is kept. */
  take(): Made {
    const made = { outputs: this.#outputs, effects: this.#effects, timers: this.#timers };
    this.#outputs = [];
    this.#effects = [];
    this.#timers = [];
    return made;
  }

  /** What is about to leave is kept (OB2). */
  keep(): void {
    this.keepAll(this.#outputs, this.#effects);
  }

  keepAll(outputs: readonly Output[], effects: readonly Effect[]): void {
    for (const output of outputs) {
      this.#kept.push(output);
      this.#keptBytes += output.bytes.length;
    }
    for (const effect of effects) this.#keptEffects.push(effect);
    while (this.#kept.length > KEPT_OUTPUTS_MAX || this.#keptBytes > KEPT_OUTPUT_BYTES_MAX) {
      this.#keptBytes -= this.#kept.shift()?.bytes.length ?? 0;
    }
  }

  acknowledge({ outputs, effects }: Acknowledged): void {
    this.#kept = this.#kept.filter(({ to, sequence }) => sequence > (outputs[to] ?? 0));
    this.#keptBytes = this.#kept.reduce((sum, output) => sum + output.bytes.length, 0);
    this.#keptEffects = this.#keptEffects.filter(({ effect }) => effect > effects);
  }
}
