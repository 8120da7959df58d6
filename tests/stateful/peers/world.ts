/** Virtual time, and channels that are slow, break, and bring a frame twice or too early. */
import type { Channel, ChannelReader, PeerClock } from "../../../functions/sessions/attach/mod.ts";
import type { Draws } from "../../sim/random.ts";

interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const before = (a: Due, b: Due): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** What is to happen, in order. */
export class World implements PeerClock {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Due[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    let isOff = false;
    this.at(ms, () => {
      if (!isOff) run();
    });
    return () => {
      isOff = true;
    };
  }

  at(ms: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, run });
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1;
      const [a, b] = [heap[i], heap[parent]];
      if (a === undefined || b === undefined || !before(a, b)) return;
      [heap[i], heap[parent]] = [b, a];
      i = parent;
    }
  }

  runUntil(endMs: number): void {
    for (let steps = 0;; steps++) {
      if (steps > 500_000) throw new Error("a run does not end");
      const next = this.#heap[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#pop();
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = endMs;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let i = 0;;) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        const [a, b] = [heap[child], heap[least]];
        if (a !== undefined && b !== undefined && before(a, b)) least = child;
      }
      const [a, b] = [heap[i], heap[least]];
      if (least === i || a === undefined || b === undefined) return;
      [heap[i], heap[least]] = [b, a];
      i = least;
    }
  }
}

/** How channels are. */
export interface WirePlan {
  /** Milliseconds that a frame takes, at most. */
  readonly delayMs: number;
  /** That a channel breaks with a frame. */
  readonly breaks: number;
  /** That a frame with data comes twice, or before the one before it. */
  readonly garbles: number;
  /** That a host does not read for so long. */
  readonly stalls: number;
  readonly stallMs: number;
}

/** Puts its hands on frames: each is sent as it is returned; null is not sent. */
export type Meddle = (
  wire: Wire,
  to: "home" | "host",
  frame: Uint8Array<ArrayBuffer>,
) => Uint8Array<ArrayBuffer> | null;

/** A channel between a host and a home. */
export class Wire {
  readonly hostEnd: Channel;
  readonly homeEnd: Channel;
  readonly #world: World;
  readonly #draws: Draws;
  #plan: WirePlan;
  readonly #meddle: Meddle;
  #host: ChannelReader | null = null;
  #home: ChannelReader | null = null;
  readonly #lastMs = { home: 0, host: 0 };
  #isBroken = false;
  /** What came before there was a reader. */
  #early: (() => void)[] = [];
  /** Frames that came, for those who break it at one of them. */
  readonly #count: () => boolean;

  /** @param count called for each frame that is sent; true breaks the channel there. */
  constructor(world: World, draws: Draws, plan: WirePlan, meddle: Meddle, count: () => boolean) {
    this.#world = world;
    this.#draws = draws;
    this.#plan = plan;
    this.#meddle = meddle;
    this.#count = count;
    this.hostEnd = { send: (frame) => this.#send("home", frame), close: () => this.#close("home") };
    this.homeEnd = { send: (frame) => this.#send("host", frame), close: () => this.#close("host") };
  }

  /** Who reads its ends. */
  join(end: "host" | "home", reader: ChannelReader): void {
    if (end === "host") this.#host = reader;
    else this.#home = reader;
    const early = this.#early;
    this.#early = [];
    for (const bring of early) bring();
  }

  /** Nothing comes through any more; its ends find out, each in its time. */
  break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const { delayMs } = this.#plan;
    this.#world.at(this.#draws.integer(0, delayMs * 2), () => this.#host?.broken());
    this.#world.at(this.#draws.integer(0, delayMs * 2), () => this.#home?.broken());
  }

  /** Nothing happens to it any more. */
  calm(): void {
    this.#plan = { ...this.#plan, breaks: 0, garbles: 0, stalls: 0 };
  }

  #send(to: "home" | "host", frame: Uint8Array<ArrayBuffer>): void {
    const sent = this.#meddle(this, to, frame);
    if (sent === null || this.#isBroken) return;
    if (this.#count() || this.#draws.chance(this.#plan.breaks)) return this.break();
    const hasData = ((sent[0] ?? 0) & 0x80) !== 0;
    if (hasData && this.#draws.chance(this.#plan.garbles)) {
      // Twice, or so late that the next one comes before it.
      if (this.#draws.chance(0.5)) this.#bring(to, sent);
      else return void this.#world.at(this.#draws.integer(5, 30), () => this.#bring(to, sent));
    }
    this.#bring(to, sent);
  }

  #bring(to: "home" | "host", frame: Uint8Array<ArrayBuffer>): void {
    const bring = () => {
      const reader = to === "host" ? this.#host : this.#home;
      if (reader === null) this.#early.push(bring);
      else if (!this.#isBroken) reader.frame(frame);
    };
    this.#world.at(this.#arrivalMs(to), bring);
  }

  /** In order, in each direction. */
  #arrivalMs(to: "home" | "host"): number {
    const nowMs = this.#world.nowMs();
    const isStalled = to === "host" && this.#draws.chance(this.#plan.stalls);
    const delayMs = this.#draws.integer(0, this.#plan.delayMs) + (isStalled ? this.#plan.stallMs : 0);
    this.#lastMs[to] = Math.max(this.#lastMs[to], nowMs + delayMs);
    return this.#lastMs[to] - nowMs;
  }

  /** What was sent before comes; then the other end sees it broken. */
  #close(to: "home" | "host"): void {
    this.#world.at(this.#arrivalMs(to), () => {
      if (this.#isBroken) return;
      this.#isBroken = true;
      (to === "host" ? this.#host : this.#home)?.broken();
    });
  }
}
