/**
 * Decides which apps come last where a machine has too few cores: an app that computes much, over a while, gives way to
 * its site and to the apps that compute little. The site's one thread serves every app; while it waits for a core, all
 * of them do.
 *
 * Life of a member: a process is given the app (`join`) → `looked`, at each look at what it uses → `leave`.
 *
 * CW1  The CPU time of an app's processes, each from its own start and those that have ended with it, fills a bucket
 *      that CORES_FREE run off all the time. Over BURST_MS the app gives way, until the bucket is empty: LEVEL_MS_MAX
 *      are in it at most, so that it has to compute little for a while, and not for ever.
 * CW2  While an app gives way all its processes do, and one that is started for it does from its start.
 * CW3  An order that the system refuses is tried again at the next look.
 */

/** Cores whose time runs off the bucket: an app that computes less than this never gives way. */
export const CORES_FREE = 0.25;
/**
 * Milliseconds of CPU time that an app may use at once: several times the start of an isolate and its first requests.
 */
export const BURST_MS = 1_000;
/** Most milliseconds of CPU time in the bucket: they run off in a minute of rest. */
export const LEVEL_MS_MAX = 15_000;

/** A process, as far as it can give way to others. */
export interface GivesWay {
  /** Has the process give way from now on, or no more; returns false where the system refuses that now. */
  giveWay(does: boolean): boolean;
  readonly startedGivingWay: boolean;
}

/** A process among those of its app. */
export class CoreMember {
  readonly #cores: AppCores;
  readonly #process: GivesWay;
  #cpuMs = 0;
  #does: boolean;

  constructor(cores: AppCores, process: GivesWay) {
    this.#cores = cores;
    this.#process = process;
    this.#does = process.startedGivingWay;
  }

  /**
   * Notes the CPU time that the process has used, and follows its app (CW2).
   *
   * @param cpuMs since the process started.
   */
  looked(cpuMs: number): void {
    this.#cores.used(Math.max(0, cpuMs - this.#cpuMs));
    this.#cpuMs = cpuMs;
    this.follow();
  }

  /** Has the process give way, or stop doing so, as its app does (CW2, CW3). */
  follow(): void {
    const { givesWay } = this.#cores;
    if (this.#does !== givesWay && this.#process.giveWay(givesWay)) this.#does = givesWay;
  }

  /** Takes the process out of its app's: it has ended. */
  leave(): void {
    this.#cores.left(this);
  }
}

/** The CPU time that one app uses at one site. */
export class AppCores {
  readonly #members = new Set<CoreMember>();
  readonly #nowMs: () => number;
  #levelMs = 0;
  #lookedMs = -Infinity;
  #givesWay = false;

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** True while the app's processes give way. */
  get givesWay(): boolean {
    return this.#givesWay;
  }

  /** True when all that was used has run off: the app can be forgotten, since one that begins anew is no different. */
  get isRested(): boolean {
    return this.#levelMs <= this.#ranOffMs(this.#nowMs());
  }

  /** Adds a process that is given the app. */
  join(process: GivesWay): CoreMember {
    const member = new CoreMember(this, process);
    this.#members.add(member);
    member.follow();
    return member;
  }

  /** Called by a member when its process has ended. */
  left(member: CoreMember): void {
    this.#members.delete(member);
  }

  /** Called by a member when its process has used so much more CPU time (CW1). */
  used(cpuMs: number): void {
    const nowMs = this.#nowMs();
    this.#levelMs = Math.min(LEVEL_MS_MAX, Math.max(0, this.#levelMs - this.#ranOffMs(nowMs)) + cpuMs);
    this.#lookedMs = nowMs;
    const givesWay = this.#levelMs > (this.#givesWay ? 0 : BURST_MS);
    if (givesWay === this.#givesWay) return;
    this.#givesWay = givesWay;
    for (const member of this.#members) member.follow();
  }

  /** Returns the milliseconds of CPU time that have run off since the last look. */
  #ranOffMs(nowMs: number): number {
    return CORES_FREE * Math.max(0, nowMs - this.#lookedMs);
  }
}
