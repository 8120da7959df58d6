/** The calls that one stateful session waits for: made by its home, given up when nobody waits any more. */
import type { Call, CallKind, CallOutcome } from "../../functions/turns/mod.ts";
import { type CallMaker, makeCall } from "./made_calls.ts";

/** See the file's header. */
export class OpenCalls {
  readonly #maker: Omit<CallMaker, "signal">;
  readonly #done: (call: number, outcome: CallOutcome) => void;
  readonly #failed: (error: unknown) => void;
  readonly #open = new Map<number, { readonly kind: CallKind; readonly controller: AbortController }>();

  /** @param failed what was done could not be told: the session can't go on as it is. */
  constructor(
    maker: Omit<CallMaker, "signal">,
    done: (call: number, outcome: CallOutcome) => void,
    failed: (error: unknown) => void,
  ) {
    this.#maker = maker;
    this.#done = done;
    this.#failed = failed;
  }

  get size(): number {
    return this.#open.size;
  }

  /** What they ask for. */
  get kinds(): CallKind[] {
    return [...this.#open.values()].map(({ kind }) => kind);
  }

  make(call: Call): void {
    const controller = new AbortController();
    this.#open.set(call.call, { kind: call.kind, controller });
    makeCall({ ...this.#maker, signal: controller.signal }, call).then((outcome) => {
      if (this.#open.get(call.call)?.controller !== controller) return;
      this.#open.delete(call.call);
      this.#done(call.call, outcome);
    }).catch(this.#failed);
  }

  /** Nobody waits for it any more. */
  drop(call: number): void {
    this.#open.get(call)?.controller.abort();
    this.#open.delete(call);
  }

  close(): void {
    for (const call of [...this.#open.keys()]) this.drop(call);
  }
}
