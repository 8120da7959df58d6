/** Questions and their answers, where a site asks again before all answers have come (store/tree/resync.ts Y2). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Compare } from "../../../store/wire/compare_message.ts";
import { Core } from "../../../store/core/core.ts";
import { digestOf, type DigestPart } from "../../../store/model/digest.ts";
import { Fetches } from "../../../store/tree/fetches.ts";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { Resync } from "../../../store/tree/resync.ts";

const RANGE = prefixRange(packKey(["row"])), KEY = packKey(["row", 1]);

/** Lets what was begun go on until it waits for others. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

/** A site below the root with a stale row, that asks whether its parent has the same. */
function asking() {
  const core = new Core(
    { site: "c", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
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
  core.replica = 3;
  core.setPath(["root"]);
  core.cover(RANGE);
  core.rows.put({ ...core.own(KEY, new Uint8Array(9)), clock: 900, known: 0 });
  core.uncover(RANGE);
  const fetches = new Fetches(), asked: Compare[] = [];
  let id = 1;
  const resync = new Resync(core, fetches, {
    send: (message) => void asked.push(message),
    request: (fetching) => void resync.takes(fetching),
    fetch: () => Promise.resolve(),
    nextId: () => ++id,
  });
  const fetching = fetches.begin({ kind: "fetch", id, range: RANGE, limit: 0, reverse: false, trace: "" });
  const answer = ({ id, range }: Compare, parts: readonly DigestPart[] = []) =>
    resync.compared("root", { kind: "compared", id, range, parts });
  return { core, resync, fetching, asked, answer };
}

Deno.test("what was the same when a site asked is not taken for an answer to what it asks since (resync.ts Y1)", async () => {
  const { core, resync, fetching, asked, answer } = asking();
  resync.takes(fetching);
  await settled();
  // Its parent heard the question twice, as happens where it was welcomed twice.
  const [first] = asked;
  assert.ok(first !== undefined);
  // An owner brings an older row back, before the answers come.
  core.rows.apply(undefined, { ...core.own(KEY, null), clock: 5 });
  await answer(first);
  await settled();
  assert.equal(asked.length, 2, "it is not the same any more");
  await answer(first);
  assert.equal(core.coverage.hasRange(RANGE), false, "the second answer to the first question");
  const [, second] = asked;
  assert.ok(second !== undefined);
  await answer(second);
  assert.equal(core.coverage.hasRange(RANGE), true);
});

Deno.test("what the old parent said is the same is not covered under the new one", async () => {
  const { core, resync, fetching, asked, answer } = asking();
  resync.takes(fetching);
  await settled();
  const [question] = asked;
  assert.ok(question !== undefined);
  const rows = (await core.rows.list(RANGE, 0, false)).seen;
  // The new parent has its hello, in which nothing of this range is covered, while these are looked at.
  const answering = answer(question, [
    { end: KEY, digest: digestOf([]) },
    { end: RANGE.end, digest: digestOf(rows) },
  ]);
  resync.connect();
  await answering;
  assert.deepEqual(core.coverage.within(RANGE), []);
  assert.equal(core.stale.touches(RANGE), true, "they are compared with what the new one has");
});
