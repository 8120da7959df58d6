/** A home for tests: one session in a real isolate, its log kept here, its calls answered as the test says. */
import { decodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import type {
  Acknowledged,
  Call,
  CallOutcome,
  Commit,
  KeptCheckpoint,
  OpenedProgram,
  Parked,
} from "../../../functions/sessions/turn/mod.ts";
import { decodeValue, encodeValue } from "../../../functions/values/value.ts";
import type { ChannelSink, StatefulEnd } from "../../../functions/sessions/serve/ports.ts";
import type { IsolateApp } from "../../../runtime/isolate/mod.ts";
import type { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import type { OpenChannel } from "../../../functions/sessions/serve/ports.ts";
import { keptAfter } from "../../functions/sessions/turn/kept_checkpoint.ts";
import { joined } from "../../functions/sessions/turn/entries.ts";

/** What a request came to. */
export type Outcome =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "error"; readonly code: string; readonly message: string }
  | { readonly kind: "response"; readonly status: number; readonly text: string };

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i);
const text = new TextDecoder();

export class TestHome {
  readonly commits: Commit[] = [];
  readonly logged: string[] = [];
  checkpoint: KeptCheckpoint | null = null;
  parked: Parked | null = null;
  opened: OpenedProgram | null = null;
  end: { readonly end: StatefulEnd; readonly isCause: boolean } | null = null;
  epoch = 1;
  /** What names of requests begin with: another home of the same log has others. */
  requests = "q";
  /** Answers calls; undefined: never. */
  answer: (call: Call) => CallOutcome | Promise<CallOutcome> | undefined = () => ({
    ok: false,
    code: "not_available",
    message: "no",
  });
  readonly calls: Call[] = [];
  readonly #pool: Pick<StatefulPool, "open">;
  readonly #app: IsolateApp;
  readonly #id: string;
  readonly #class: string;
  #open: OpenChannel | undefined;
  #number = 0;
  #clock = 1_000_000;
  #request = 0;
  readonly #waiting = new Map<string, (outcome: Outcome) => void>();
  #watchers: (() => void)[] = [];

  constructor(pool: Pick<StatefulPool, "open">, app: IsolateApp, id: string, className = "probe") {
    this.#pool = pool;
    this.#app = app;
    this.#id = id;
    this.#class = className;
  }

  /** Opens it (again) from what is kept here. */
  async open(): Promise<void> {
    this.#number = 0;
    this.parked = this.end = this.opened = null;
    this.#open = await this.#pool.open(this.#app, {
      class: this.#class,
      id: this.#id,
      epoch: this.epoch,
      replica: this.epoch,
      code: this.#app.version,
      seed: SEED,
      checkpoint: this.checkpoint,
      entries: joined(this.commits.filter(({ first }) => first > (this.checkpoint?.at ?? 0))),
      out: {},
      effectsApplied: 0,
    }, this.#sink());
    await this.until(() => this.opened !== null || this.parked !== null || this.end !== null);
    if (this.end !== null && this.opened === null && this.parked === null) {
      throw new Error(`its isolate ended before it was open: ${JSON.stringify(this.end)}`);
    }
  }

  /** Another home opens it, in its epoch. */
  async move(): Promise<void> {
    this.leave();
    this.epoch++;
    await this.open();
  }

  leave(): void {
    this.#open?.isolate.closeChannel(this.#open.channel);
  }

  call(method: string, ...args: unknown[]): Promise<Outcome> {
    return this.#ask(encodeCall({ kind: "rpc", method, args: encodeValue(args) }));
  }

  fetch(url: string, chain: readonly string[] = []): Promise<Outcome> {
    return this.#ask(encodeCall({ kind: "fetch", method: "GET", url, headers: [], body: null }), chain);
  }

  /** The value of a call. @throws Error where it came to something else. */
  async value(method: string, ...args: unknown[]): Promise<unknown> {
    const outcome = await this.call(method, ...args);
    if (outcome.kind === "value") return outcome.value;
    throw new Error(JSON.stringify(outcome));
  }

  #ask(bytes: Uint8Array, chain: readonly string[] = []): Promise<Outcome> {
    const request = `${this.requests}${++this.#request}`;
    const answered = new Promise<Outcome>((resolve) => this.#waiting.set(request, resolve));
    this.#deliver({ kind: "request", request, chain, bytes });
    return answered;
  }

  /** As a home does after the isolate was lost in a request. */
  reject(): void {
    const [request] = this.#waiting.keys();
    const of = request === undefined
      ? null
      : { kind: "request", request, chain: [], bytes: new Uint8Array() } as const;
    this.#deliver({
      kind: "reject",
      of,
      code: "isolate_killed",
      message: "it was killed",
    });
  }

  timer(name: string, dueMs: number): void {
    this.#deliver({ kind: "timer", name, dueMs });
  }

  checkpointNow(): void {
    this.#open?.isolate.checkpointNow(this.#open.channel);
  }

  acknowledge(acknowledged: Acknowledged): void {
    this.#open?.isolate.acknowledge(this.#open.channel, acknowledged);
  }

  #deliver(
    event: Parameters<OpenChannel["isolate"]["deliver"]>[1] extends infer E ? DistributiveOmit<E> : never,
  ): void {
    const isolate = this.#open?.isolate;
    if (isolate === undefined || this.#open === undefined) throw new Error("it is not open");
    this.#clock += 16;
    isolate.deliver(
      this.#open.channel,
      { ...event, number: ++this.#number, storeClock: this.#clock } as never,
    );
  }

  /** Resolves when something holds, looked at whenever something came. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  #changed(): void {
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const watcher of watchers) watcher();
  }

  #sink(): ChannelSink {
    const changed = <A extends unknown[]>(take: (...args: A) => void) => (...args: A) => {
      take(...args);
      this.#changed();
    };
    return {
      opened: changed((opened) => {
        this.opened = opened;
        for (const { to, bytes } of opened.outputs) this.#received(to, bytes);
        for (const call of opened.calls) this.#made(call);
      }),
      commit: changed((commit) => {
        this.commits.push(commit);
        for (const { to, bytes } of commit.outputs) this.#received(to, bytes);
        for (const call of commit.calls) this.#made(call);
      }),
      call: changed((call) => this.#made(call)),
      dropped: () => {},
      checkpointed: changed((checkpoint) => {
        this.checkpoint = keptAfter(this.checkpoint, checkpoint);
      }),
      parked: changed((parked) => {
        this.parked = parked;
      }),
      log: changed((_, line) => void this.logged.push(line)),
      ended: changed((end, isCause) => {
        this.end = { end, isCause };
      }),
    };
  }

  #made(call: Call): void {
    this.calls.push(call);
    const outcome = this.answer(call);
    if (outcome instanceof Promise) void outcome.then((came) => this.#answered(call, came));
    else if (outcome !== undefined) this.#answered(call, outcome);
  }

  #answered(call: Call, outcome: CallOutcome): void {
    if (this.#open === undefined) return;
    this.#clock += 16;
    this.#open.isolate.deliver(this.#open.channel, {
      kind: "result",
      storeClock: this.#clock,
      call: call.call,
      outcome,
    });
  }

  #received(to: string, bytes: Uint8Array): void {
    const answer = decodeAnswer(bytes);
    const resolve = this.#waiting.get(to);
    this.#waiting.delete(to);
    if (answer.kind === "value") resolve?.({ kind: "value", value: decodeValue(answer.value) });
    else if (answer.kind === "error") resolve?.(answer);
    else {
      const { status, body } = answer;
      resolve?.({ kind: "response", status, text: text.decode(body ?? new Uint8Array(0)) });
    }
  }
}

/** The events without what a home gives each. */
type DistributiveOmit<E> = E extends { readonly number: number } ? Omit<E, "number" | "storeClock"> : never;
