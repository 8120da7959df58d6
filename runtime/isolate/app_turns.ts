/**
 * The turns of apps at the site's one thread: the work that an app's frames have the site do is bounded for each turn
 * of the event loop, and so are the app's commits, at a time and over a while. Beyond that its isolates are not read:
 * what they want to send waits in their own memory.
 *
 * AT1  Deficit round robin. Each turn of the loop gives an app QUANTUM_MS; the time of handling its frames is taken
 *      off, and while nothing is left no frame of it is handled. A step that takes longer than what was left is paid
 *      for by the turns after it; what was not used is not kept. So between two steps of any other app there is one
 *      quantum and one step of each that is busy, and an app that is alone is not slowed down.
 * AT2  A frame counts FRAME_MS_LEAST at least: the work that it sets off runs when the handler has returned.
 * AT3  While more than HELD_BYTES_MAX of an app's commits are not over, no frame of it is handled: all of them go to
 *      disk together with those of others, which wait until they are written. What exceeds it is one frame of each
 *      isolate. Such a wait ends by itself: a commit waits for the store, or for an isolate that reads its answers, and
 *      one that doesn't is ended (watchdog.ts).
 * AT4  Over a while an app commits COMMIT_BYTES_PER_MS: beyond that, and COMMIT_BURST_BYTES at once, no frame of it is
 *      handled until time has paid for it. What is written once is written again at neighbours, and read for them. A
 *      row counts with what it costs beside its bytes. Beside another app that had frames within OTHERS_MS it is a
 *      quarter of that: a megabyte takes the site's thread some 30 ms, from its frame to the disk and the neighbours.
 * AT5  Work that is done for an app later, such as telling a watch, is paid for before it is done, one thing after the
 *      other.
 * AT6  The time of reading and changing rows is taken off the same credit, as the store's lock has it (TL2): an app is
 *      a lane of that lock.
 */
import { strict as assert } from "node:assert";
import type { Lane } from "../../store/model/lock.ts";
import { afterTurn } from "../loop/next_turn.ts";
import type { Pace } from "./frame_reader.ts";

/**
 * Milliseconds of an app in each turn of the loop. A neighbour's request takes some eight turns of the loop: with each
 * of them as much later it has not become slow. An app that is alone does as much in shorter turns as in longer ones
 * (29,400 requests a second with this, 29,800 with four times as much); beside small messages, checks and watches
 * without end a p99 is a half to a fifth of what it is with that; beside reads of long rows, which are one step each,
 * it is the same.
 */
export const QUANTUM_MS = 0.25;
/** Milliseconds that a frame counts at least: half of what a read costs the site that finds its row in memory. */
export const FRAME_MS_LEAST = 0.01;
/**
 * Bytes that an app commits in a millisecond, where it is alone. 16 MiB a second: half of the site's thread, and more
 * than a line of 100 Mbit/s takes up.
 */
export const COMMIT_BYTES_PER_MS = 16 * 1024;
/**
 * Bytes that an app commits in a millisecond beside others: an eighth of the thread. With all attacks of the soak on, a
 * neighbour's p99 is two thirds of what it is with COMMIT_BYTES_PER_MS.
 */
export const COMMIT_BYTES_PER_MS_SHARED = COMMIT_BYTES_PER_MS / 4;
/** Milliseconds after its last frame for which an app counts as one that others share the site with. */
export const OTHERS_MS = 1_000;
/** Bytes that an app commits at once: the largest atomic operation. */
export const COMMIT_BURST_BYTES = 4 * 1024 * 1024;
/**
 * Bytes of commits that are not over: written, and sent to the neighbours, in a millisecond or two; hundreds of small
 * rows at once.
 */
export const HELD_BYTES_MAX = 256 * 1024;

/** The apps of a site that had frames of late. */
export class SiteTurns {
  #last: AppTurns | null = null;
  #lastMs = -Infinity;
  /** Time of the last frame of an app other than `#last`. */
  #othersMs = -Infinity;

  /** Notes that frames of an app were handled. */
  heard(app: AppTurns, nowMs: number): void {
    if (app !== this.#last) {
      this.#othersMs = this.#lastMs;
      this.#last = app;
    }
    this.#lastMs = nowMs;
  }

  /** Reports whether another app shares the site with this one. */
  isShared(app: AppTurns, nowMs: number): boolean {
    return nowMs - (app === this.#last ? this.#othersMs : this.#lastMs) < OTHERS_MS;
  }
}

/** The turns of one app at one site, of all its isolates. */
export class AppTurns implements Lane {
  readonly #site: SiteTurns;
  #creditMs = QUANTUM_MS;
  #heldBytes = 0;
  #isTurning = false;
  /** Bytes that may still be committed, as of `#earnedMs` (AT4); less than 0 is what time has to pay for. */
  #commitBytes = COMMIT_BURST_BYTES;
  #earnedMs = performance.now();
  #waiting: (() => void)[] = [];
  /** Callbacks that wait for a turn only, whatever the app commits. */
  #holders: (() => void)[] = [];
  #taking: { readonly ms: number; readonly go: () => void }[] = [];
  /** Timer that runs while a caller waits for what time pays. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(site: SiteTurns = new SiteTurns()) {
    this.#site = site;
  }

  /** True where a frame of the app may be handled now. */
  get mayGo(): boolean {
    if (this.#commitBytes <= 0) this.#earn();
    return !this.isSpent && this.#heldBytes <= HELD_BYTES_MAX && this.#commitBytes > 0;
  }

  /** Bytes of the app's commits that are not over. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Takes off the time that handling the app's frames took (AT1). */
  spend(ms: number): void {
    this.#site.heard(this, performance.now());
    this.#creditMs -= ms;
    this.#turn();
  }

  /** True where nothing is left of this turn. */
  get isSpent(): boolean {
    return this.#creditMs <= 0;
  }

  /**
   * Pays for work that is to be done for the app: null where it may be done at once, otherwise a promise that resolves
   * when it may be (AT5).
   */
  take(ms: number): Promise<void> | null {
    if (this.#taking.length === 0 && !this.isSpent) {
      this.spend(ms);
      return null;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#taking.push({ ms, go: resolve });
    this.#turn();
    return promise;
  }

  /** True where the app may hold the store's lock now (AT6). */
  get mayHold(): boolean {
    return !this.isSpent;
  }

  held(ms: number): void {
    this.spend(ms);
  }

  whenMayHold(go: () => void): void {
    this.#holders.push(go);
    this.#turn();
  }

  /** Notes a commit that begins, or waits for those before it (AT3, AT4). */
  commitBegins(bytes: number): void {
    this.#earn();
    this.#commitBytes -= bytes;
    this.#heldBytes += bytes;
  }

  /** Notes a commit that is over. */
  commitEnds(bytes: number): void {
    this.#heldBytes -= bytes;
    assert(this.#heldBytes >= 0, "AT3: commits give back more than they held");
    this.#wake();
  }

  /** Calls back, once, when a frame may be handled again, as far as can be told. */
  wait(go: () => void): void {
    this.#waiting.push(go);
    this.#arm();
  }

  /** Takes out a callback that waits no more. */
  leave(go: () => void): void {
    this.#waiting = this.#waiting.filter((each) => each !== go);
    if (this.#waiting.length === 0) this.#disarm();
  }

  #earn(): void {
    const nowMs = performance.now();
    const earned = (nowMs - this.#earnedMs) * this.#bytesPerMs(nowMs);
    this.#commitBytes = Math.min(COMMIT_BURST_BYTES, this.#commitBytes + earned);
    this.#earnedMs = nowMs;
  }

  /** Returns the bytes that the app earns in a millisecond (AT4). */
  #bytesPerMs(nowMs: number): number {
    return this.#site.isShared(this, nowMs) ? COMMIT_BYTES_PER_MS_SHARED : COMMIT_BYTES_PER_MS;
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#waiting.length === 0 || this.#commitBytes > 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#wake();
    }, Math.ceil(-this.#commitBytes / this.#bytesPerMs(performance.now())) + 1);
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #turn(): void {
    if (this.#isTurning || this.#creditMs >= QUANTUM_MS) return;
    this.#isTurning = true;
    afterTurn(() => {
      this.#isTurning = false;
      this.#creditMs = Math.min(QUANTUM_MS, this.#creditMs + QUANTUM_MS);
      this.#wake();
      this.#turn();
    });
  }

  #giveTaking(): void {
    let given = 0;
    for (; given < this.#taking.length && !this.isSpent; given++) {
      const { ms, go } = this.#taking[given] ?? { ms: 0, go: () => {} };
      this.#creditMs -= ms;
      go();
    }
    if (given > 0) this.#taking.splice(0, given);
  }

  #wake(): void {
    this.#giveTaking();
    if (this.#holders.length > 0 && this.mayHold) {
      const holders = this.#holders;
      this.#holders = [];
      for (const go of holders) go();
    }
    if (this.#waiting.length === 0) return;
    if (!this.mayGo) return this.#arm();
    this.#disarm();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }
}

/** The pace at which the frames of one isolate are read: by the turns of its app. */
export class ReadPace implements Pace {
  /** Turns of its app, as soon as it has one. */
  turns: AppTurns | null = null;
  #beganMs = 0;
  #isHeld = false;
  #isOver = false;
  #go: () => void = () => {};

  /** True while the site doesn't read the isolate: that nothing comes from it says nothing about it. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  begin(): void {
    this.#beganMs = performance.now();
  }

  get isSpent(): boolean {
    return this.turns?.isSpent === true && !this.#isOver;
  }

  look(frames: number): Promise<void> | null {
    const { turns } = this;
    if (turns === null || this.#isOver) return null;
    const nowMs = performance.now();
    turns.spend(Math.max(nowMs - this.#beganMs, frames * FRAME_MS_LEAST));
    this.#beganMs = nowMs;
    return turns.mayGo ? null : this.#wait(turns);
  }

  /** Reads the rest of what the isolate sent without waiting: its process has ended. */
  end(): void {
    this.#isOver = true;
    this.turns?.leave(this.#go);
    this.#go();
  }

  async #wait(turns: AppTurns): Promise<void> {
    this.#isHeld = true;
    while (!this.#isOver && !turns.mayGo) {
      await new Promise<void>((resolve) => {
        this.#go = resolve;
        turns.wait(resolve);
      });
    }
    this.#isHeld = false;
    this.begin();
  }
}
