import assert from "node:assert/strict";
import { ADDRESS_MIB_MAX, ProcessBounds } from "./process_bounds.ts";
import { usageOf, UsageReader } from "./process_usage.ts";

const LIMITS = { cpuMs: 1_000, heapMib: 128, buffersMib: 128 };
const GOOD = { cpuMs: 0, threads: 8, addressMib: 20_000, residentMib: 60 };

/** What comes of a process that uses so many cores, looked at every 100 ms; null after a minute. */
function endsAfterMs(cores: number, restMs = 0): number | null {
  const bounds = new ProcessBounds(LIMITS, 0, 0);
  let cpuMs = 0;
  for (let nowMs = 100; nowMs <= 60_000; nowMs += 100) {
    if (nowMs % (1_000 + restMs) < 1_000) cpuMs += cores * 100;
    if (bounds.excess({ ...GOOD, cpuMs }, nowMs)?.cause === "cpu") return nowMs;
  }
  return null;
}

Deno.test("native threads that compute on and on end their process, and one thread of JavaScript does not (PB2)", () => {
  assert.equal(endsAfterMs(1), null);
  assert.equal(endsAfterMs(1.4), null, "with its garbage collection");
  assert.equal(endsAfterMs(3, 9_000), null, "a burst of a second in ten");
  assert.ok((endsAfterMs(2) ?? Infinity) <= 4_200);
  assert.ok((endsAfterMs(8) ?? Infinity) <= 400);
});

Deno.test("memory, threads and addresses beyond any program's end a process (PB1, PB3)", () => {
  const of = (usage: object) => new ProcessBounds(LIMITS, 0, 0).excess({ ...GOOD, ...usage }, 100);
  assert.equal(of({}), null);
  assert.match(of({ residentMib: 257 })?.why ?? "", /held 257 MiB of 256 MiB/);
  assert.equal(of({ residentMib: 256 }), null);
  assert.match(of({ threads: 10_000 })?.why ?? "", /10000 threads/);
  assert.match(of({ addressMib: ADDRESS_MIB_MAX + 1 })?.why ?? "", /addresses/);
});

Deno.test("a process's line is read whatever its name is", () => {
  const line = (name: string) =>
    `7 (${name}) R 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 35 0 9 20971520 512 18446744073709551615 1 1`;
  for (const name of ["deno", "a) R 1 (b", ") ) )"]) {
    assert.deepEqual(
      usageOf(line(name)),
      { cpuMs: 2_000, threads: 35, addressMib: 20, residentMib: 2 },
      name,
    );
  }
  assert.equal(usageOf(""), undefined);
});

Deno.test("a reader tells all threads of a process, and nothing of one that has gone", async () => {
  if (Deno.build.os !== "linux") return;
  const own = new UsageReader(Deno.pid);
  const before = own.read();
  assert.ok(before !== undefined && before.threads > 1 && before.residentMib > 10);
  own.close();
  assert.equal(own.read(), undefined);
  const child = new Deno.Command(Deno.execPath(), { args: ["eval", "0"] }).spawn();
  const other = new UsageReader(child.pid);
  await child.status;
  assert.equal(other.read(), undefined);
  other.close();
});
