/**
 * Sessions that call each other at random, in virtual time, each at a home that looks for circles as the runtime does
 * (functions/sessions/serve/waits.ts). Questions take their time, and what they are told may be over when it arrives.
 *
 * WW1  A call that fails for a circle has not been begun, and was in one while it was looked for; it is in one still, where
 *      no handler was undone.
 * WW2  At the end nobody waits.
 */
import {
  type CallWait,
  NO_WAITS,
  victim,
  type WaitedCall,
} from "../../../../functions/sessions/serve/waits.ts";
import type { Draws } from "../../../sim/random.ts";

/** What broken variants put their hands on. */
export interface WaitsBreaks {
  /** What a look is told. */
  readonly told?: (ask: () => Promise<CallWait>) => Promise<CallWait>;
  /** Nobody looks. */
  readonly blind?: boolean;
  /** A call that runs already is taken for one in line. */
  readonly undoes?: boolean;
}

interface Call {
  readonly request: string;
  readonly from: string | null;
  readonly to: string;
  readonly chain: readonly string[];
  state: "queued" | "begun" | "over";
  readonly done: () => void;
  /** When it was last in a circle. */
  circledMs: number;
}

/** As the runtime has it (hosted.ts). */
const LOOK_MS = 250;
const SESSIONS = ["a", "b", "c", "d", "e"];
const CALLS_MAX = 3;
/** Handlers that are undone, where some are. */
const UNDONE_SHARE = 0.4;

/** See the file's header. */
export class WaitsWorld {
  readonly wrong: string[] = [];
  circles = 0;
  answered = 0;
  readonly #draws: Draws;
  readonly #breaks: WaitsBreaks;
  readonly #calls = new Map<string, Call>();
  readonly #lines = new Map<string, Call[]>(SESSIONS.map((id) => [id, []]));
  readonly #running = new Map<string, Call>();
  #events: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];
  #nowMs = 0;
  #order = 0;
  /** Handlers may be undone while they wait: what they called and is not begun is taken back. */
  readonly #isUndoing: boolean;

  constructor(draws: Draws, breaks: WaitsBreaks = {}) {
    this.#draws = draws;
    this.#isUndoing = draws.fork("undoing").chance(0.5);
    this.#breaks = breaks;
  }

  #after(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.#nowMs + ms, order: this.#order++, run });
  }

  /** Runs it to its end. */
  async run(): Promise<void> {
    for (let i = this.#draws.integer(2, 14); i > 0; i--) {
      this.#after(
        this.#draws.integer(0, 600),
        () => this.#call(null, this.#draws.pick(SESSIONS), [], () => {}),
      );
    }
    for (const id of SESSIONS) if (this.#breaks.blind !== true) this.#lookLater(id);
    while (this.#events.length > 0 && this.#nowMs < 30_000) {
      this.#events.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      const event = this.#events.shift();
      this.#nowMs = event?.atMs ?? this.#nowMs;
      event?.run();
      this.#noteCircles();
      // What follows from it in promises comes before the next one.
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const { request, from, to, state } of this.#calls.values()) {
      if (state !== "over") this.wrong.push(`WW2: ${request} of ${from} to ${to} is ${state}`);
    }
  }

  #call(from: string | null, to: string, chain: readonly string[], done: () => void): void {
    const request = this.#draws.integer(0, 0xffffff).toString(16).padStart(6, "0");
    if (chain.includes(to) || this.#calls.has(request)) return done(); // `cycle` at once: the chain travels
    const call: Call = { request, from, to, chain: [...chain, to], state: "queued", done, circledMs: -1 };
    this.#calls.set(request, call);
    this.#lines.get(to)?.push(call);
    this.#next(to);
  }

  #next(id: string): void {
    if (this.#running.has(id)) return;
    const call = this.#lines.get(id)?.shift();
    if (call === undefined) return;
    call.state = "begun";
    this.#running.set(id, call);
    let left = this.#draws.integer(0, CALLS_MAX);
    if (this.#isUndoing && this.#draws.chance(UNDONE_SHARE)) {
      this.#after(this.#draws.integer(0, 2_000), () => this.#undo(call));
    }
    const step = () => {
      if (call.state === "over") return;
      if (left-- === 0) return this.#end(call);
      const to = this.#draws.pick(SESSIONS);
      const further = () => this.#after(this.#draws.integer(0, 20), step);
      this.#after(this.#draws.integer(0, 200), () => this.#call(id, to, call.chain, further));
    };
    step();
  }

  #undo(call: Call): void {
    if (call.state !== "begun") return;
    for (const each of this.#waited(call.to)) {
      if (each.state !== "queued") continue;
      each.state = "over";
      this.#lines.set(each.to, this.#lines.get(each.to)?.filter((one) => one !== each) ?? []);
    }
    this.#end(call);
  }

  #end(call: Call): void {
    call.state = "over";
    this.answered++;
    this.#running.delete(call.to);
    this.#after(this.#draws.integer(0, 20), call.done);
    this.#next(call.to);
  }

  /** Calls of the handler that runs. */
  #waited(id: string): Call[] {
    return [...this.#calls.values()].filter(({ from, state }) => from === id && state !== "over");
  }

  #lookLater(id: string): void {
    this.#after(LOOK_MS, () => void this.#look(id).then(() => this.#nowMs < 20_000 && this.#lookLater(id)));
  }

  async #look(id: string): Promise<void> {
    const sinceMs = this.#nowMs;
    const named = ({ to, request }: Call) => ({ name: { app: "shop", class: "c", id: to }, request });
    const look = () => {
      const queued = this.#lines.get(id)?.map(({ request }) => request) ?? [];
      const runs = this.#running.get(id);
      if (this.#breaks.undoes === true && runs !== undefined) queued.push(runs.request);
      return { calls: this.#waited(id).map(named), queued: new Set(queued) };
    };
    const ask = (call: WaitedCall) =>
      new Promise<CallWait>((resolve) => {
        this.#after(this.#draws.integer(0, 120), () => {
          const there = this.#calls.get(call.request);
          const waits = there === undefined || there.state === "over"
            ? NO_WAITS
            : { isQueued: there.state === "queued", calls: this.#waited(call.name.id).map(named) };
          this.#after(this.#draws.integer(0, 120), () => resolve(waits));
        });
      });
    const { told } = this.#breaks;
    const found = await victim(look, (call) => told?.(() => ask(call)) ?? ask(call));
    const call = found === null ? undefined : this.#calls.get(found.request);
    if (call !== undefined) this.#refuse(call, sinceMs);
  }

  /** As a home does: only what is in its line still. */
  #refuse(call: Call, sinceMs: number): void {
    const line = this.#lines.get(call.to) ?? [];
    if (this.#breaks.undoes !== true && !line.includes(call)) return;
    if (call.state !== "queued") this.wrong.push(`WW1: ${call.request} has been begun`);
    const isCircled = this.#isUndoing ? call.circledMs >= sinceMs : this.#isInCircle(call);
    if (!isCircled) this.wrong.push(`WW1: ${call.request} is in no circle`);
    this.circles++;
    call.state = "over";
    this.#lines.set(call.to, line.filter((one) => one !== call));
    call.done();
  }

  #noteCircles(): void {
    for (const call of this.#calls.values()) {
      if (call.state === "queued" && this.#isInCircle(call)) call.circledMs = this.#nowMs;
    }
  }

  #isInCircle({ from, to }: Call): boolean {
    const reached = new Set([to]);
    for (const one of reached) for (const each of this.#waited(one)) reached.add(each.to);
    return from !== null && reached.has(from);
  }
}
