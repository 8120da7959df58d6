/** The calls that one stateful session waits for: made by its home, given up when nobody waits any more. */
import { type Call, type CallKind, type CallOutcome, resultsIn } from "../../functions/turns/mod.ts";
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

  /** Of answers that the log does not have yet, by call (made_calls.ts, M2); null, as most have it: there are none. */
  #unheard: Map<number, () => void> | null = null;

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
    const kept = (heard: () => void) => void (this.#unheard ??= new Map()).set(call.call, heard);
    makeCall(this.#maker, call, controller.signal, kept).then((outcome) => {
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

  /**
   * A commit with these entries is made; what is returned is to be called when it is at all owners.
   *
   * @param isLast no call is open any more: what is not in it will be in none.
   */
  logged(entries: Uint8Array, isLast: boolean): () => void {
    const unheard = this.#unheard;
    if (unheard === null) return () => {};
    const heard: (() => void)[] = [];
    for (const call of resultsOf(entries)) {
      const tell = unheard.get(call);
      if (tell !== undefined) heard.push(tell);
      unheard.delete(call);
    }
    if (isLast || unheard.size === 0) this.#unheard = null;
    return () => {
      for (const tell of heard) tell();
    };
  }

  close(): void {
    for (const call of [...this.#open?.keys() ?? []]) this.drop(call);
  }
}

/** What can't be read is told by who replays it. */
function resultsOf(entries: Uint8Array): number[] {
  try {
    return resultsIn(entries);
  } catch {
    return [];
  }
}
