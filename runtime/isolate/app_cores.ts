/**
 * Who comes first where a machine has too few cores: an app that computes much, over a while, gives way to its site and to
 * the apps that compute little. The site's one thread serves every app; while it waits for a core, all of them do.
 *
 * Life of a member: a process is given the app (`join`) → `looked`, at each look at what it uses → `leave`.
 *
 * CW1  What the processes of an app use, each from its own start and those that have ended with it, fills a bucket that
 *      CORES_FREE run off all the time. Over BURST_MS the app gives way, until the bucket is empty: LEVEL_MS_MAX are in it at
 *      most, so that it has to compute little for a while, and not for ever.
 * CW2  While an app gives way all its processes do, and one that is started for it does from its start.
 * CW3  What the system refuses is tried again at the next look.
 */

/** What runs off: an app that computes less for good never gives way. */
export const CORES_FREE = 0.25;
/** The start of an isolate and its first requests, several times. */
export const BURST_MS = 1_000;
/** So much has run off after a minute of rest. */
export const LEVEL_MS_MAX = 15_000;

/** A process, as far as it can give way. */
export interface GivesWay {
  /** From now on, or no more; false where the system refuses that now. */
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

  /** @param cpuMs since the process started. */
  looked(cpuMs: number): void {
    this.#cores.used(Math.max(0, cpuMs - this.#cpuMs));
    this.#cpuMs = cpuMs;
    this.follow();
  }

  /** CW2, CW3 */
  follow(): void {
    const { givesWay } = this.#cores;
    if (this.#does !== givesWay && this.#process.giveWay(givesWay)) this.#does = givesWay;
  }

  /** It has ended. */
  leave(): void {
    this.#cores.left(this);
  }
}

/** What one app computes at one site. */
export class AppCores {
  readonly #members = new Set<CoreMember>();
  readonly #nowMs: () => number;
  #levelMs = 0;
  #lookedMs = -Infinity;
  #givesWay = false;

  /** @param nowMs of a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Its processes give way. */
  get givesWay(): boolean {
    return this.#givesWay;
  }

  /** All that was used has run off: one that begins anew is no other. */
  get isRested(): boolean {
    return this.#levelMs <= this.#ranOffMs(this.#nowMs());
  }

  /** A process is given the app. */
  join(process: GivesWay): CoreMember {
    const member = new CoreMember(this, process);
    this.#members.add(member);
    member.follow();
    return member;
  }

  /** Of a member: it has ended. */
  left(member: CoreMember): void {
    this.#members.delete(member);
  }

  /** Of a member: it has used so much more (CW1). */
  used(cpuMs: number): void {
    const nowMs = this.#nowMs();
    this.#levelMs = Math.min(LEVEL_MS_MAX, Math.max(0, this.#levelMs - this.#ranOffMs(nowMs)) + cpuMs);
    this.#lookedMs = nowMs;
    const givesWay = this.#levelMs > (this.#givesWay ? 0 : BURST_MS);
    if (givesWay === this.#givesWay) return;
    this.#givesWay = givesWay;
    for (const member of this.#members) member.follow();
  }

  /** Since the last look. */
  #ranOffMs(nowMs: number): number {
    return CORES_FREE * Math.max(0, nowMs - this.#lookedMs);
  }
}
