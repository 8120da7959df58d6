/**
 * What a site's process asks of its disk while it answers writes, by the kernel's record (strace), not by ours:
 *
 * Y1  The answer to a write leaves only after the write went to the site's database and a sync of that file, begun
 *     after it, has succeeded.
 * Y2  Writes that come together share syncs.
 * Y3  Reads ask for no sync. What remains where nothing is written is the clock, which is put on disk ahead of its
 *     time once in CLOCK_RESERVE_MS.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { settle, type SiteAddress } from "../examples/board/site_status.ts";
import { readCluster } from "../../runtime/cli/cluster.ts";
import { CLOCK_RESERVE_MS } from "../../store/model/limits.ts";
import { SOAK_APP } from "../soak/soak.ts";
import { startCluster, type TestCluster } from "./cluster.ts";

const CALLS = "read,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev,fdatasync,fsync";
/** A page of the database and its frame, so that a row's id is seen wherever it stands. */
const SHOWN_BYTES = "8300";
const ALONE = 10;
const TOGETHER = 120;
const AT_ONCE = 30;
/** For so long a client only reads, and so often: more than twice as often as a clock is put on disk meanwhile. */
const READING_MS = 2_000;
const READS_MIN = 50;

/** One line of the record; a call that others interrupted has two. */
interface Call {
  readonly thread: string;
  readonly ms: number;
  readonly text: string;
}

/** A sync that succeeded, by the indexes of the lines on which it begins and ends. */
interface Sync {
  readonly file: string;
  readonly begin: number;
  readonly end: number;
  readonly ms: number;
}

/** Records a process until `stop`; a text says why that can't be done here. */
async function trace(pid: number, file: string): Promise<{ stop: () => Promise<Call[]> } | string> {
  const args = ["-f", "-ttt", "-y", "-s", SHOWN_BYTES, "-o", file, "-e", `trace=${CALLS}`, "-p", `${pid}`];
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command("strace", { args, stdin: "null", stdout: "null", stderr: "piped" }).spawn();
  } catch (error) {
    return `no strace here: ${error}`;
  }
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  while (!/attached/.test(said)) {
    const { done, value } = await reader.read();
    if (done) return `strace can't attach here: ${said}`;
    said += value;
  }
  const rest = (async () => {
    while (!(await reader.read()).done);
  })();
  return {
    stop: async () => {
      child.kill("SIGINT");
      await Promise.all([child.status, rest]);
      return (await Deno.readTextFile(file)).split("\n").flatMap((line) => {
        const parts = /^(\d+) +(\d+\.\d+) (.*)$/.exec(line);
        return parts === null
          ? []
          : [{ thread: parts[1] ?? "", ms: Number(parts[2]) * 1000, text: parts[3] ?? "" }];
      });
    },
  };
}

function syncsOf(calls: readonly Call[]): Sync[] {
  const open = new Map<string, { file: string; begin: number }>();
  return calls.flatMap(({ thread, ms, text }, i) => {
    const begun = /^f(?:data)?sync\(\d+<([^>]*)>/.exec(text);
    if (begun !== null) open.set(thread, { file: begun[1] ?? "", begin: i });
    else if (!/^<\.\.\. f(data)?sync resumed>/.test(text)) return [];
    const sync = open.get(thread);
    if (sync === undefined || !/\) += 0$/.test(text)) return [];
    return [{ ...sync, end: i, ms }];
  });
}

/** Y1 for one write; null where it holds. */
function unsynced(id: string, calls: readonly Call[], syncs: readonly Sync[]): string | null {
  const asked = calls.findIndex(({ text }) => text.includes(`POST /soak/items?${id} `));
  const answered = calls.findIndex(({ text }, i) =>
    i > asked && text.includes("HTTP/1.1 201") && text.includes(`x-item: ${id}\\r`)
  );
  if (asked < 0 || answered < 0) return `${id}: its request or its answer is not in the record`;
  const written = calls.findIndex(({ text }, i) =>
    i > asked && i < answered && /^pwrite(64|v)\(/.test(text) && text.includes(id)
  );
  if (written < 0) return `${id}: answered before it was written`;
  const file = /<([^>]*)>/.exec(calls[written]?.text ?? "")?.[1];
  const synced = syncs.some((sync) => sync.file === file && sync.begin > written && sync.end < answered);
  return synced ? null : `${id}: answered before ${file} was synced`;
}

async function put(site: SiteAddress, id: string): Promise<void> {
  const answer = await fetch(new URL(`/soak/items?${id}`, site.url), {
    method: "POST",
    body: JSON.stringify({ id, group: "traced", by: "trace", n: 1 }),
  });
  assert.equal(answer.status, 201, await answer.text());
}

/** Writes alone, writes together, and reads; ids and times of each. */
async function load(site: SiteAddress, settled: () => Promise<void>) {
  const alone = Array.from({ length: ALONE }, (_, i) => `${site.id}_alone_${i}_`);
  for (const id of alone) await put(site, id);
  const left = Array.from({ length: TOGETHER }, (_, i) => `${site.id}_together_${i}_`);
  const together = [...left];
  const togetherMs = Date.now();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) await put(site, id);
  }));
  const restMs = Date.now();
  await settled();
  const readingMs = Date.now();
  let reads = 0;
  for (; Date.now() < readingMs + READING_MS || reads < READS_MIN; reads++) {
    const answer = await fetch(new URL(`/soak/items/${alone[0]}`, site.url));
    assert.match(await answer.text(), /traced/);
  }
  return { alone, together, togetherMs, restMs, readingMs, readMs: Date.now(), reads };
}

async function traced(cluster: TestCluster, id: string, t: Deno.TestContext): Promise<void> {
  const sites = (await readCluster(cluster.data))?.sites ?? [];
  const site = sites.find((each) => each.id === id);
  assert.ok(site !== undefined);
  const recording = await trace(site.pid, join(cluster.data, `${id}.trace`));
  if (typeof recording === "string") {
    return void await t.step({ name: recording, ignore: true, fn: () => {} });
  }
  const loaded = await load(site, async () => void await settle(sites, cluster.adminToken, 30_000))
    .catch(async (error) => {
      await recording.stop();
      throw error;
    });
  const calls = await recording.stop();
  const syncs = syncsOf(calls);
  const bad = [...loaded.alone, ...loaded.together].map((write) => unsynced(write, calls, syncs));
  assert.deepEqual(bad.filter((each) => each !== null), [], "Y1");
  const shared = syncs.filter(({ ms }) => ms >= loaded.togetherMs && ms <= loaded.restMs).length;
  assert.ok(shared < TOGETHER / 2, `Y2: ${shared} syncs for ${TOGETHER} writes, ${AT_ONCE} at once`);
  const { readingMs, readMs, reads } = loaded;
  const idle = syncs.filter(({ ms }) => ms >= readingMs && ms <= readMs).length;
  const clocks = Math.ceil((readMs - readingMs) / CLOCK_RESERVE_MS) + 1;
  assert.ok(idle <= clocks && clocks < reads / 2, `Y3: ${idle} syncs for the clock and ${reads} reads`);
  // That the record can show a lie: without its syncs, no write of it passes.
  assert.ok(loaded.alone.every((write) => unsynced(write, calls, []) !== null));
}

Deno.test("a site answers a write when its disk has it, shares syncs, and syncs nothing for reads", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-sync-" });
  try {
    const topology = join(folder, "pair.json");
    await Deno.writeTextFile(
      topology,
      JSON.stringify({ sites: [{ id: "cloud" }, { id: "edge", parent: "cloud" }] }),
    );
    await using cluster = await startCluster({ apps: [SOAK_APP], topology });
    await t.step("an edge, on SQLite", (step) => traced(cluster, "edge", step));
    await t.step("the root, on Deno KV", (step) => traced(cluster, "cloud", step));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
