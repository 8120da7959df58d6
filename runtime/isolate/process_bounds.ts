/**
 * Bounds on what one process of an app may hold and use over a while, whatever it does with it: where requests can't be
 * told apart, and where native threads compute while JavaScript waits.
 *
 * PB1  A process that holds more memory than heap and buffers together may is ended, even where a failed allocation
 *      would leave it alive: what it holds it would hold for ever.
 * PB2  A process that uses more CPU, over a while, than a thread of JavaScript and its garbage collection do, is ended.
 *      Native threads that nobody waits for (`deriveBits`, again and again) are as many as the machine has cores for.
 * PB3  A process with more threads, or more address space, than any program here has is ended.
 */
import type { IsolateLimits } from "./limits.ts";
import type { ProcessUsage } from "./process_usage.ts";

/** Number of cores that may be used all the time: a thread of JavaScript and what collects its garbage. */
export const CORES_SUSTAINED = 1.5;
/**
 * Milliseconds of CPU time that may be used beyond that at once: some seconds of a machine with two cores, less with
 * more.
 */
const BURST_CPU_MS = 2_000;
/** Number of threads: Deno's own with all of its pool at work are 35 on two cores; V8 has one a core. */
export const THREADS_MAX = 64 + 2 * navigator.hardwareConcurrency;
/** MiB of address space: a process has 19 GiB reserved as it starts, and 10 more for each memory of WebAssembly. */
export const ADDRESS_MIB_MAX = 160 * 1024;

/** MiB that the kernel counts for a process beside its memory: page tables, sockets, the cache of its bootstrap. */
export const KERNEL_MIB = 64;

/** The reason why a process has to end. */
export interface Excess {
  readonly why: string;
  readonly cause: "cpu" | "memory" | "threads";
}

/** Watches the use of one process. */
export class ProcessBounds {
  readonly #limits: Pick<IsolateLimits, "cpuMs" | "heapMib" | "buffersMib">;
  #burstMs: number;
  #cpuMs: number;
  #lookedMs: number;

  constructor(limits: Pick<IsolateLimits, "cpuMs" | "heapMib" | "buffersMib">, cpuMs: number, nowMs: number) {
    this.#limits = limits;
    this.#burstMs = this.#burstMsMax;
    this.#cpuMs = cpuMs;
    this.#lookedMs = nowMs;
  }

  /** Checks what is used now; returns null where that is within bounds. */
  excess({ cpuMs, threads, addressMib, residentMib }: ProcessUsage, nowMs: number): Excess | null {
    const { heapMib, buffersMib } = this.#limits;
    const memoryMibMax = heapMib + buffersMib;
    if (residentMib > memoryMibMax) {
      return { why: `it held ${Math.round(residentMib)} MiB of ${memoryMibMax} MiB`, cause: "memory" };
    }
    if (threads > THREADS_MAX) {
      return { why: `it had ${threads} threads of ${THREADS_MAX}`, cause: "threads" };
    }
    if (addressMib > ADDRESS_MIB_MAX) {
      return { why: `it reserved ${Math.round(addressMib)} MiB of addresses`, cause: "memory" };
    }
    const earnedMs = CORES_SUSTAINED * (nowMs - this.#lookedMs);
    this.#burstMs = Math.min(this.#burstMsMax, this.#burstMs + earnedMs - (cpuMs - this.#cpuMs));
    this.#cpuMs = cpuMs;
    this.#lookedMs = nowMs;
    if (this.#burstMs >= 0) return null;
    return { why: `its threads used more than ${CORES_SUSTAINED} cores for a while`, cause: "cpu" };
  }

  get #burstMsMax(): number {
    return Math.max(BURST_CPU_MS, 2 * this.#limits.cpuMs);
  }
}
