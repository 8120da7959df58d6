/** The calls that one stateful session waits for: made by its home, given up when nobody waits any more. */
import type { Call, CallKind, CallOutcome } from "../../functions/turns/mod.ts";
import { type CallMaker, makeCall } from "./made_calls.ts";

/** Whose calls they are. */
export interface CallingRun {
  done(call: number, outcome: CallOutcome): void;
  /** What was done could not be told: the session can't go on as it is. */
  failed(error: unknown): void;
}

/** See the file's header. */
export class OpenCalls {
  readonly #maker: CallMaker;
  readonly #run: CallingRun;
  /** null, as most sessions have it: it has made none. */
  #open: Map<number, { readonly kind: CallKind; readonly controller: AbortController }> | null = null;

  constructor(maker: CallMaker, run: CallingRun) {
    this.#maker = maker;
    this.#run = run;
  }

  get size(): number {
    return this.#open?.size ?? 0;
  }

  /** What they ask for. */
  get kinds(): CallKind[] {
    return [...this.#open?.values() ?? []].map(({ kind }) => kind);
  }

  make(call: Call): void {
    const controller = new AbortController();
    const open = this.#open ??= new Map();
    open.set(call.call, { kind: call.kind, controller });
    makeCall(this.#maker, call, controller.signal).then((outcome) => {
      if (open.get(call.call)?.controller !== controller) return;
      open.delete(call.call);
      this.#run.done(call.call, outcome);
    }).catch((error) => this.#run.failed(error));
  }

  /** Nobody waits for it any more. */
  drop(call: number): void {
    this.#open?.get(call)?.controller.abort();
    this.#open?.delete(call);
  }

  close(): void {
    for (const call of [...this.#open?.keys() ?? []]) this.drop(call);
  }
}
