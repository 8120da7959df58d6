/**
 * A value that goes with all the work that a call starts, promises and timers included: as `AsyncLocalStorage` has it,
 * with the value in the engine's context itself.
 *
 * Deno's `AsyncLocalStorage` keeps its values in a WeakMap, which holds each of them until a full collection: every
 * request would live that long. Node's own contexts copy what they find here and hand it on, so both can be nested.
 *
 * AS1  A process has one scope: all of them would use the same name in the engine's context.
 */
import assert from "node:assert/strict";
import { core } from "./deno_core.ts";

let scopes = 0;

/** A scope that holds one value for the work that is running; undefined outside of any. */
export class AsyncScope<T> {
  constructor() {
    assert(++scopes === 1, "AS1: a process has one scope");
  }

  /** Returns the value of the work that is running. */
  get(): T | undefined {
    return core.getAsyncContext()?.["sojournScope"] as T | undefined;
  }

  /** Runs a function, and all that it starts, with a value. */
  run<R>(value: T, run: () => R): R {
    const before = core.getAsyncContext();
    core.setAsyncContext(before === undefined ? new Alone(value) : { ...before, sojournScope: value });
    try {
      return run();
    } finally {
      core.setAsyncContext(before);
    }
  }
}

/** A context that holds nothing beside the scope's value. */
class Alone<T> {
  readonly [name: string]: unknown;
  readonly sojournScope: T;

  constructor(value: T) {
    this.sojournScope = value;
  }
}
