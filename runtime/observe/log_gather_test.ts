import { strict as assert } from "node:assert";
import { gatherLogs } from "./log_gather.ts";
import { type LogLine, logLineSchema, parseLogQuery, type SiteLogQuery } from "./log_line.ts";
import { LogMerge } from "./log_merge.ts";
import { LogRing } from "./log_ring.ts";
import { logTail } from "./log_tail.ts";
import { readNdjson } from "./ndjson.ts";

const line = (site: string, atMs: number, text: string, more: Partial<LogLine> = {}): LogLine => ({
  atMs,
  site,
  level: "info",
  text,
  ...more,
});

function query(text: string): SiteLogQuery {
  const parsed = parseLogQuery(new URLSearchParams(text), 1_000_000);
  assert(typeof parsed !== "string", String(parsed));
  return parsed;
}

/** Sites as rings that can be taken away. */
class Sites {
  readonly rings = new Map<string, LogRing>();
  readonly down = new Set<string>();
  /** Streams that are open, by site. */
  readonly open = new Map<string, Set<AbortController>>();
  begun = 0;
  ended = 0;

  gather(text: string): ReadableStream<Uint8Array> {
    return gatherLogs(
      {
        sites: () => [...this.rings.keys()],
        ask: (site, params, signal) => this.#ask(site, params, signal),
        nowMs: () => 500_000,
      },
      query(text),
      { begun: () => void this.begun++, ended: () => void this.ended++ },
    );
  }

  kill(site: string): void {
    this.down.add(site);
    for (const stream of this.open.get(site) ?? []) stream.abort(new Error("the link was lost"));
  }

  restart(site: string): LogRing {
    const ring = new LogRing();
    this.rings.set(site, ring);
    this.down.delete(site);
    return ring;
  }

  #ask(site: string, params: URLSearchParams, signal: AbortSignal): Promise<Response> {
    const ring = this.rings.get(site);
    if (ring === undefined || this.down.has(site)) return Promise.reject(new Error(`no way to ${site}`));
    const lost = new AbortController();
    const streams = this.open.get(site) ?? new Set();
    this.open.set(site, streams);
    streams.add(lost);
    const reader = logTail({ site, ring, nowMs: () => 500_000 }, query(params.toString())).getReader();
    signal.addEventListener("abort", () => lost.abort(signal.reason), { once: true });
    const over = () => {
      streams.delete(lost);
      void reader.cancel();
    };
    return Promise.resolve(
      new Response(
        new ReadableStream({
          start: (controller) => {
            lost.signal.addEventListener("abort", () => {
              over();
              controller.error(lost.signal.reason);
            });
          },
          pull: async (controller) => {
            const { done, value } = await reader.read();
            if (lost.signal.aborted) return;
            if (!done) return controller.enqueue(value);
            over();
            controller.close();
          },
          cancel: over,
        }, { highWaterMark: 0 }),
      ),
    );
  }
}

/** Reads lines until one is found. */
async function readTo(values: AsyncGenerator<unknown>, text: string): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for (;;) {
    const { done, value } = await values.next();
    if (done) return found;
    if (typeof value !== "object" || value === null || !("text" in value)) continue; // a sign of life
    const line = logLineSchema.parse(value);
    found.push(line);
    if (line.text.includes(text)) return found;
  }
}

async function texts(body: ReadableStream<Uint8Array>): Promise<string[]> {
  return (await readTo(readNdjson(body), "no such text")).map(({ text }) => text);
}

Deno.test("logs are merged by time, filtered, and cut to the newest", async () => {
  const sites = new Sites();
  const [a, b] = [sites.restart("a"), sites.restart("b")];
  a.add(line("a", 10, "a10", { app: "shop", level: "error" }));
  a.add(line("a", 30, "a30"));
  b.add(line("b", 20, "b20", { app: "shop" }));
  b.add(line("b", 40, "b40", { app: "other" }));
  const rows: [string, string[]][] = [
    ["", ["a10", "b20", "a30", "b40"]],
    ["limit=2", ["a30", "b40"]],
    ["app=shop", ["a10", "b20"]],
    ["app=shop&level=error", ["a10"]],
    ["site=b", ["b20", "b40"]],
    ["limit=0", []],
  ];
  for (const [asked, expected] of rows) assert.deepEqual(await texts(sites.gather(asked)), expected, asked);
  assert.equal(sites.ended, rows.length);
});

Deno.test("a dead site is a line that says so, and its lines come when it is back (G1)", async () => {
  const sites = new Sites();
  const a = sites.restart("a");
  sites.restart("b").add(line("b", 1, "b before"));
  const values = readNdjson(sites.gather("follow=1"));
  await readTo(values, "b before");
  sites.kill("b");
  const [notice] = await readTo(values, "does not answer");
  assert.deepEqual([notice?.site, notice?.notice], ["b", "unreachable"]);
  a.add(line("a", 2, "a goes on"));
  assert.equal((await readTo(values, "a goes on")).length, 1);
  sites.restart("b").add(line("b", 3, "b again"));
  assert.deepEqual((await readTo(values, "b again")).map(({ notice, text }) => notice ?? text), [
    "back",
    "b again",
  ]);
  await values.return(undefined);
});

Deno.test("a lost link loses no line and repeats none", async () => {
  const sites = new Sites();
  const a = sites.restart("a");
  const values = readNdjson(sites.gather("follow=1"));
  a.add(line("a", 1, "one"));
  await readTo(values, "one");
  sites.kill("a");
  a.add(line("a", 2, "two"));
  await readTo(values, "does not answer");
  sites.down.delete("a");
  const lines = await readTo(values, "two");
  assert.deepEqual(lines.map(({ notice, text }) => notice ?? text), ["back", "two"]);
  await values.return(undefined);
});

Deno.test("when the reader has gone nothing is held (G2)", async () => {
  const sites = new Sites();
  sites.restart("a");
  sites.restart("b");
  const reader = sites.gather("follow=1").getReader();
  await reader.read();
  const next = reader.read(); // the sanitizer of resources sees timers that are left
  await reader.cancel();
  assert.equal((await next).done, true);
  assert.deepEqual([sites.begun, sites.ended], [1, 1]);
  await sites.gather("follow=1").cancel(); // of an answer that nobody begins to read
  assert.deepEqual([sites.begun, sites.ended], [1, 1]);
  for (const ring of sites.rings.values()) assert.equal(ring.waiting, 0);
  for (const streams of sites.open.values()) assert.equal(streams.size, 0);
});

Deno.test("a ring is bounded, and a slow reader is told how much it missed (R1, R2, log_tail.ts T1, log_gather.ts G3)", async () => {
  const ring = new LogRing({ linesMax: 4 });
  const tail = readNdjson(logTail({ site: "a", ring, nowMs: () => 9 }, query("here=1&follow=1")));
  ring.add(line("a", 0, "first"));
  await readTo(tail, "first");
  for (let i = 1; i <= 10; i++) ring.add(line("a", i, `line ${i}`));
  const lines = await readTo(tail, "line 10");
  assert.deepEqual(lines.map(({ text }) => text), [
    "6 lines of a were dropped before they were read",
    ...["line 7", "line 8", "line 9", "line 10"],
  ]);
  assert.equal(lines[0]?.notice, "dropped");
  await tail.return(undefined);
  const small = new LogRing({ bytesMax: 2_000 });
  for (let i = 0; i < 100; i++) small.add(line("a", i, "x".repeat(100)));
  assert.equal(small.next - small.first, 5);
  small.add(line("a", 0, "y".repeat(50_000)));
  assert.deepEqual([small.next - small.first, small.newest(1, () => true).lines[0]?.line.text.length], [
    1,
    16 * 1024 + 1,
  ]);
});

Deno.test("lines wait for older ones of other sites, and who adds too many waits (M1, M2)", async () => {
  let nowMs = 0;
  const merge = new LogMerge(() => nowMs);
  const { signal } = new AbortController();
  await merge.add(line("a", 20, "a20"), signal);
  await merge.add(line("b", 10, "b10"), signal);
  nowMs = 1_000;
  assert.deepEqual((await merge.next(0, signal)).map(({ text }) => text), ["b10", "a20"]);
  const added: number[] = [];
  const adding = (async () => {
    for (let i = 0; i < 300; i++) {
      await merge.add(line("a", i, `${i}`), signal);
      added.push(i);
    }
  })();
  await Promise.resolve();
  for (let turn = 0; turn < 1_000; turn++) await Promise.resolve();
  assert(added.length < 300, `${added.length} were taken with no reader`);
  nowMs = 2_000;
  let given = 0;
  while (given < 300) {
    given += (await merge.next(0, signal)).length;
    nowMs += 1_000;
    await Promise.resolve();
  }
  await adding;
});

Deno.test("a query that is none says what it would take", () => {
  const rows: [string, RegExp][] = [
    ["level=loud", /level takes one of debug, info, warn, error/],
    [`app=${"a".repeat(41)}`, /app has at most 40 characters/],
    ["limit=5001", /5000/],
    ["limit=x", /limit takes a whole number/],
    ["since=soon", /since takes 90s, 10m.*"soon"/],
    ["follow=yes", /follow takes 0 or 1/],
    ["after=x", /after|pattern/],
  ];
  for (const [text, says] of rows) {
    const outcome = parseLogQuery(new URLSearchParams(text), 0);
    assert(typeof outcome === "string", text);
    assert.match(outcome, says);
  }
  assert.equal(query("since=10m").sinceMs, 400_000);
  assert.equal(query("since=2026-01-01T00:00:00Z").sinceMs, Date.UTC(2026, 0, 1));
});
