/** What consumers say on its way to owners (functions/queues/verdict_post.ts). */
import { strict as assert } from "node:assert";
import { type SaidResult, VerdictPost } from "../../../functions/queues/verdict_post.ts";
import type { Verdict } from "../../../functions/queues/words.ts";

const ticket = { id: "x", lease: 7, sentMs: 1, owners: ["a", "b", "c"] };
const ack = { kind: "ack", ms: null, error: "" } as const;

class Post {
  nowMs = 0;
  readonly told: [site: string, verdict: Verdict][] = [];
  readonly silent = new Set<string>();
  readonly post = new VerdictPost({
    nowMs: () => this.nowMs,
    wake: () => {},
    tell: (to, { verdicts }) => verdicts.forEach((verdict) => this.told.push([to, verdict])),
    isHeard: (site) => !this.silent.has(site),
    fail: (error) => {
      throw error;
    },
  });

  /** What has become of a verdict after all that is under way. */
  async now(promise: Promise<SaidResult>): Promise<SaidResult | "nothing"> {
    for (let turns = 0; turns < 10; turns++) await Promise.resolve();
    return await Promise.race([promise, Promise.resolve("nothing" as const)]);
  }

  get sites(): string[] {
    return this.told.map(([site]) => site);
  }
}

Deno.test("an acknowledgement goes from owner to owner until one has taken it", async () => {
  const at = new Post(), said = at.post.say(ticket, ack);
  assert.equal(await at.now(said), "nothing");
  assert.deepEqual(at.sites, ["a"]);
  at.nowMs = 1_000;
  at.post.tick();
  assert.equal(await at.now(said), "nothing");
  at.post.settled("b", 1, "unknown");
  await at.now(said);
  assert.deepEqual(at.sites, ["a", "b", "c"]);
  at.post.settled("c", 1, "done");
  assert.equal(await at.now(said), "done");
  assert.equal(at.post.size, 0);
});

Deno.test("an owner that is not heard is passed over, and tried when it is the last", async () => {
  const at = new Post();
  at.silent.add("a").add("b");
  const said = at.post.say(ticket, ack);
  await at.now(said);
  assert.deepEqual(at.sites, ["c"]);
  at.silent.add("c");
  at.post.gone("c");
  at.silent.delete("a");
  at.nowMs = 1_000;
  at.post.tick();
  await at.now(said);
  assert.deepEqual(at.sites, ["c", "a"]);
});

Deno.test("only the owner that lent a message is asked for more time, or to have it come again (VP1)", async () => {
  for (const kind of ["retry", "extend", "reject", "release"] as const) {
    const at = new Post(), said = at.post.say(ticket, { kind, ms: null, error: "" });
    at.nowMs = 1_000;
    at.post.tick();
    await at.now(said);
    assert.deepEqual([...new Set(at.sites)], ["a"]);
    at.silent.add("a");
    at.post.gone("a");
    assert.equal(await at.now(said), "unreachable");
    assert.deepEqual([...new Set(at.sites)], ["a"]);
  }
});

Deno.test("what was said last under a lease holds (VP2)", async () => {
  const at = new Post();
  const longer = at.post.say(ticket, { kind: "extend", ms: 5, error: "" }), done = at.post.say(ticket, ack);
  assert.equal(await at.now(longer), "over");
  at.post.settled("a", 1, "done");
  assert.equal(await at.now(done), "nothing", "that was the answer to what was said before");
  at.post.settled("a", 2, "done");
  assert.equal(await at.now(done), "done");
});

Deno.test("a verdict that no owner takes is given up after a minute, and one that none knows at once", async () => {
  const at = new Post(), said = at.post.say(ticket, ack);
  for (at.nowMs = 0; at.nowMs < 60_000; at.nowMs += 1_000) at.post.tick();
  assert.equal(await at.now(said), "nothing");
  at.post.tick();
  assert.equal(await at.now(said), "unreachable");
  const other = at.post.say(ticket, ack);
  for (const site of ["a", "b", "c"]) at.post.settled(site, 2, "unknown");
  assert.equal(await at.now(other), "unknown");
});
