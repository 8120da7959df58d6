/** The answers to what children fetch (store/tree/replies.ts). */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { cpuUsage } from "node:process";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { FlushReads } from "../../../store/tree/flush_reads.ts";
import { packKey } from "../../../store/model/key.ts";
import { Least } from "../../../store/model/least.ts";
import { prefixRange, type Range, WHOLE } from "../../../store/model/range.ts";
import { Replies } from "../../../store/tree/replies.ts";

const RANGE = prefixRange(packKey(["row"]));
const ASKED = {
  fetch: { kind: "fetch", id: 1, range: RANGE, limit: 0, reverse: false, trace: "" },
  compare: { kind: "compare", id: 1, range: RANGE, digest: new Uint8Array(16), trace: "" },
} as const;

/** A root that is asked by a child; what the child is fed from then on, and how many answers there are. */
function asked(question: keyof typeof ASKED, count = 1) {
  const core = new Core(
    { site: "root", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.cover(WHOLE);
  const subscribed: Range[] = [];
  const replies = new Replies(core, {
    fetch: () => Promise.resolve(),
    subscribe: (_, range) => void subscribed.push(range),
    due: () => {},
    asks: () => {},
  });
  const child = new Child("e", 0, { stables: new Least(), floors: new Least() });
  child.connected = child.welcomed = true;
  for (let i = 0; i < count; i++) replies.asked(child, { ...ASKED[question], id: i + 1 });
  for (const fetch of child.fetches) fetch.part = RANGE;
  const mark = {
    ...{ replica: 1, partial: false, head: 0, clock: 1, down: [], stable: [1], reach: [] },
    ...{ floor: 0, isFull: false, watermark: 0 },
  };
  return { child, subscribed, answers: () => replies.to(child, new FlushReads(core, mark)) };
}

for (const question of ["fetch", "compare"] as const) {
  Deno.test(`replies feed a child what it asked for by ${question} when it is there`, async () => {
    const { subscribed, answers } = asked(question);
    strictEqual((await answers()).length, 1);
    deepStrictEqual(subscribed, [RANGE]);
  });

  Deno.test(`replies remember nothing of a ${question} when its link ends while the rows are read`, async () => {
    const { child, subscribed, answers } = asked(question);
    const answering = answers();
    child.disconnect(1);
    deepStrictEqual(await answering, []);
    deepStrictEqual(subscribed, [], "nobody would end it: the range would never be evicted");
  });
}

Deno.test("replies to many fetches at once take time for each, not for each pair of them", async () => {
  const { child, answers } = asked("fetch", 40_000), since = cpuUsage();
  strictEqual((await answers()).length, 40_000);
  strictEqual(child.fetches.size, 0);
  // A fifth of a second; by pairs a quarter of a minute.
  const { user, system } = cpuUsage(since), tookMs = (user + system) / 1000;
  ok(tookMs < 6_000, `${tookMs} ms of CPU time`);
});
