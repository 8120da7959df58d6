/**
 * What a benchmark ran on: the machine, the versions, and how long its disk takes to sync right now.
 *
 * The disk's fsync moves 20-fold within an hour on shared machines, so every figure that waits for the disk is
 * printed beside a probe of the same minute.
 */
import { median } from "./record.ts";

/** One line: processor, cores, memory, operating system, Deno. */
export function machineLine(): string {
  const memoryGb = Math.round(Deno.systemMemoryInfo().total / 2 ** 30);
  return `${processorName()}, ${navigator.hardwareConcurrency} cores, ${memoryGb} GB, ` +
    `${Deno.build.os} ${Deno.osRelease()} ${Deno.build.arch}, Deno ${Deno.version.deno} (V8 ${Deno.version.v8})`;
}

function processorName(): string {
  try {
    return /^model name\s*: (.*)$/m.exec(Deno.readTextFileSync("/proc/cpuinfo"))?.[1] ?? "unknown processor";
  } catch {
    return "unknown processor";
  }
}

/** What the probe found, in milliseconds. */
export interface FsyncProbe {
  readonly medianMs: number;
  readonly minMs: number;
  readonly maxMs: number;
}

/** Appends and syncs 4 KiB a few times in `folder` (the one that the benchmark writes to). */
export async function probeFsync(folder: string, times = 32): Promise<FsyncProbe> {
  const path = await Deno.makeTempFile({ dir: folder, prefix: "fsync-probe-" });
  const block = new Uint8Array(4096);
  const tookMs: number[] = [];
  using file = await Deno.open(path, { write: true });
  try {
    for (let i = 0; i < times; i++) {
      const start = performance.now();
      await file.write(block);
      await file.syncData();
      tookMs.push(performance.now() - start);
    }
  } finally {
    await Deno.remove(path);
  }
  return { medianMs: median(tookMs), minMs: Math.min(...tookMs), maxMs: Math.max(...tookMs) };
}
