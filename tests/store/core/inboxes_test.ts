/** What is queued of other sites (store/core/inboxes.ts). */
import assert from "node:assert/strict";
import { Inboxes } from "../../../store/core/inboxes.ts";

function inboxes() {
  const host = { closed: false, failures: [] as unknown[] };
  const queued = new Inboxes({
    clock: { steadyMs: () => 0, turn: () => Promise.resolve() },
    isClosed: () => host.closed,
    fail: (error) => host.failures.push(error),
  });
  const done: string[] = [];
  const put = (site: string, name: string, wait: Promise<void> = Promise.resolve()) =>
    queued.enqueue(site, async () => {
      done.push(`${name} begins`);
      await wait;
      done.push(`${name} ends`);
    });
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return { host, queued, done, put, settled };
}

Deno.test("what a site says is handled one after the other, beside what others say", async () => {
  const { put, done, settled } = inboxes(), first = Promise.withResolvers<void>();
  put("a", "a1", first.promise);
  put("a", "a2");
  put("b", "b1");
  await settled();
  assert.deepEqual(done, ["a1 begins", "b1 begins", "b1 ends"]);
  first.resolve();
  await settled();
  assert.deepEqual(done.slice(3), ["a1 ends", "a2 begins", "a2 ends"]);
});

Deno.test("what was queued on a connection that has ended is not handled, what has begun goes on (B1)", async () => {
  const { queued, put, done, settled } = inboxes(), first = Promise.withResolvers<void>();
  queued.next("a");
  put("a", "begun", first.promise);
  put("a", "queued");
  await settled();
  queued.next("a");
  put("a", "new");
  first.resolve();
  await settled();
  assert.deepEqual(done.filter((each) => each.endsWith("ends")), ["begun ends", "new ends"]);
});

Deno.test("nothing is handled once the site is closed, and a fault ends nothing of what follows", async () => {
  const { host, queued, put, done, settled } = inboxes();
  queued.enqueue("a", () => Promise.reject(new Error("broken")));
  put("a", "next");
  await settled();
  assert.deepEqual(done, ["next begins", "next ends"]);
  assert.deepEqual(host.failures.map(String), ["Error: broken"]);
  put("a", "late");
  host.closed = true;
  await settled();
  assert.equal(done.length, 2);
});
