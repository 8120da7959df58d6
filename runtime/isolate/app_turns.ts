/**
 * Whose turn it is at the site's one thread: what the frames of an app have the site do is bounded for each turn of the
 * event loop, and so is what it commits, at a time and over a while. Beyond that its isolates are not read: what they want
 * to send waits in their own memory.
 *
 * AT1  Deficit round robin. Each turn of the loop gives an app QUANTUM_MS; what handling its frames took is taken off, and
 *      while nothing is left no frame of it is handled. A step that takes longer than what was left is paid for by the turns
 *      after it; what was not used is not kept. So between two steps of any other app there is one quantum and one step of
 *      each that is busy, and an app that is alone is not slowed down.
 * AT2  A frame counts FRAME_MS_LEAST at least: what it sets off runs when the handler has returned.
 * AT3  While more than HELD_BYTES_MAX of an app's commits are not over, no frame of it is handled: all of them go to disk
 *      together with those of others, who wait until it is written. What exceeds it is one frame of each isolate. Such a
 *      wait ends by itself: a commit waits for the store, or for an isolate that reads its answers, and one that doesn't is
 *      ended (watchdog.ts).
 * AT4  Over a while an app commits COMMIT_BYTES_PER_MS: beyond that, and COMMIT_BURST_BYTES at once, no frame of it is handled
 *      until time has paid for it. What is written once is written again at neighbours, and read for them. A row counts
 *      with what it costs beside its bytes. Beside another app that had frames within OTHERS_MS it is a quarter of that: a
 *      megabyte takes the site's thread some 30 ms, from its frame to the disk and the neighbours.
 * AT5  What is to be done for it later, such as telling a watch, is paid for before it is done, one thing after the other.
 * AT6  What reading and changing rows takes is taken off the same credit, as the store's lock has it (TL2): it is a lane of
 *      that.
 */
import { strict as assert } from "node:assert";
import type { Lane } from "../../store/model/lock.ts";
import { afterTurn } from "../loop/next_turn.ts";
import type { Pace } from "./frame_reader.ts";

/**
 * A neighbour's request takes some eight turns of the loop: with each of them as much later it has not become slow. An app
 * that is alone does as much in shorter turns as in longer ones (29,400 requests a second with this, 29,800 with four
 * times as much); beside small messages, checks and watches without end a p99 is a half to a fifth of what it is with that; beside reads
 * of long rows, which are one step each, it is the same.
 */
export const QUANTUM_MS = 0.25;
/** Half of what a read costs the site that finds its row in memory. */
export const FRAME_MS_LEAST = 0.01;
/** 16 MiB a second: half of the site's thread, and more than a line of 100 Mbit/s takes up. */
export const COMMIT_BYTES_PER_MS = 16 * 1024;
/** Beside others: an eighth of the thread. With all attacks of the soak on a neighbour's p99 is two thirds of what it is with the above. */
export const COMMIT_BYTES_PER_MS_SHARED = COMMIT_BYTES_PER_MS / 4;
/** So long after its last frame an app counts as one that others share the site with. */
export const OTHERS_MS = 1_000;
/** The largest atomic operation. */
export const COMMIT_BURST_BYTES = 4 * 1024 * 1024;
/** Written, and sent to the neighbours, in a millisecond or two; hundreds of small rows at once. */
export const HELD_BYTES_MAX = 256 * 1024;

/** Which apps of a site had frames of late. */
export class SiteTurns {
  #last: AppTurns | null = null;
  #lastMs = -Infinity;
  /** Of the last one that was another. */
  #othersMs = -Infinity;

  /** Frames of an app were handled. */
  heard(app: AppTurns, nowMs: number): void {
    if (app !== this.#last) {
      this.#othersMs = this.#lastMs;
      this.#last = app;
    }
    this.#lastMs = nowMs;
  }

  /** Whether another one shares the site with it. */
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
  /** What may be committed still, as of then (AT4); less than nothing is what time has to pay for. */
  #commitBytes = COMMIT_BURST_BYTES;
  #earnedMs = performance.now();
  #waiting: (() => void)[] = [];
  /** Those who wait for a turn only, whatever the app commits. */
  #holders: (() => void)[] = [];
  #taking: { readonly ms: number; readonly go: () => void }[] = [];
  /** Runs while somebody waits for what time pays. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(site: SiteTurns = new SiteTurns()) {
    this.#site = site;
  }

  /** A frame of it may be handled now. */
  get mayGo(): boolean {
    if (this.#commitBytes <= 0) this.#earn();
    return !this.isSpent && this.#heldBytes <= HELD_BYTES_MAX && this.#commitBytes > 0;
  }

  /** What its commits hold that are not over. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Handling its frames took so long (AT1). */
  spend(ms: number): void {
    this.#site.heard(this, performance.now());
    this.#creditMs -= ms;
    this.#turn();
  }

  /** Nothing is left of this turn. */
  get isSpent(): boolean {
    return this.#creditMs <= 0;
  }

  /** So much is to be done for it: null where it may be at once, otherwise when it may be (AT5). */
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

  /** AT6 */
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

  /** A commit begins, or waits for those before it (AT3, AT4). */
  commitBegins(bytes: number): void {
    this.#earn();
    this.#commitBytes -= bytes;
    this.#heldBytes += bytes;
  }

  /** It is over. */
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

  /** It waits no more. */
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

  /** AT4 */
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

/** How the frames of one isolate are read: as the turns of its app have it. */
export class ReadPace implements Pace {
  /** Of its app, as soon as it has one. */
  turns: AppTurns | null = null;
  #beganMs = 0;
  #isHeld = false;
  #isOver = false;
  #go: () => void = () => {};

  /** Its site doesn't read it now: that nothing comes from it says nothing about it. */
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

  /** Its process has ended: the rest of what it sent is read as it is. */
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
