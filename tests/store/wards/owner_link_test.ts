/** What a source sends to one of its owners, and when (store/wards/owner_link.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { packKey } from "../../../store/model/key.ts";
import {
  WARD_BYTES_MAX,
  WARD_FULL_MS,
  WARD_FULL_MS_MAX,
  WARD_IDLE_MS,
  WARD_LINE_BYTES_PER_MS,
  WARD_LINE_BYTES_UNDER_WAY,
  WARD_PROBE_MS,
  WARD_RESEND_MS,
} from "../../../store/model/limits.ts";
import type { Row } from "../../../store/model/row.ts";
import { OwnerLink } from "../../../store/wards/owner_link.ts";
import type { Warded, WardMessage } from "../../../store/wire/ward_message.ts";
import { wireBytes } from "../../../store/wire/wire_row.ts";
import { ProcessClock, World } from "../../sim/world.ts";

const UNDER = { config: 2, settled: true };

/** A source below the root, with one owner. */
function source() {
  const world = new World(), sent: string[] = [];
  const core = new Core(
    { site: "e", parent: "root", tier: "", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: new ProcessClock(world, { skewMs: 0, drift: 0 }),
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: (to) => Promise.resolve(void sent.push(to)) },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 9;
  core.setPath(["root"]);
  const link = new OwnerLink("o", core);
  /** Up to here the root has this site's journal. */
  let atRoot = 0;
  const isDue = (head: number, wanted = false, under = UNDER) =>
    link.isDue({ head, reach: [[atRoot, atRoot]] }, under, wanted);
  const pends = (name: string) => {
    const key = packKey([name]);
    core.rows.put(core.own(key, new Uint8Array(4)));
    link.note(key);
  };
  const message = (head: number, rows: readonly Row[] = []): WardMessage => ({
    ...{
      kind: "ward",
      replica: 9,
      after: 0,
      head,
      clock: 1,
      down: [],
      reach: [atRoot],
      part: 0,
      more: false,
      rows,
    },
    ...UNDER,
  });
  const hears = (answer: Partial<Warded>) =>
    link.heard({ ...{ kind: "warded", replica: 9, position: 0, refused: "none" }, ...UNDER, ...answer });
  return {
    ...{ core, link, isDue, pends, hears, sent, message },
    pass: (ms: number) => world.run(world.nowMs + ms),
    send: (head: number, ...batches: readonly (readonly Row[])[]) =>
      link.send((batches.length === 0 ? [[]] : batches).map((rows) => message(head, rows)), () => {}),
    reaches: (position: number) => void (atRoot = position),
    keys: async () => (await link.rows())?.map(({ position }) => position) ?? null,
  };
}

/** Of that many bytes on the line. */
function rowOf(bytes: number): Row {
  const row = { key: packKey(["x"]), clock: 1, replica: 9, position: 1, known: 1, expiresAtMs: 0 };
  const value = new Uint8Array(bytes - wireBytes({ ...row, value: new Uint8Array(0) }));
  return { ...row, value };
}

Deno.test("an owner is asked how far it reaches, again and again, and then gets what is pending past that (L1)", async () => {
  const { core, link, isDue, pends, hears, keys, pass, send } = source();
  pends("a");
  pends("b");
  pends("c");
  await core.rows.lock.run(() => Promise.resolve());
  assert.equal(isDue(3), true);
  assert.deepEqual(await keys(), []);
  await send(3);
  assert.equal(isDue(3), false);
  await pass(WARD_PROBE_MS);
  assert.equal(isDue(3), true);
  assert.equal(hears({ position: 1 }), true);
  assert.deepEqual([link.isStreaming, link.sentUpTo, link.acked, link.why], [true, 1, 1, null]);
  assert.equal(isDue(3), true);
  commit(core);
  assert.deepEqual(await keys(), [2, 3]);
  await send(3);
  assert.deepEqual(await keys(), []);
  assert.equal(isDue(3), false);
  pends("a");
  assert.equal(isDue(4), true);
  commit(core);
  assert.deepEqual(await keys(), [4]);
  link.broken();
  pends("d");
  assert.deepEqual([isDue(5), await keys(), link.why], [false, [], "no answer"]);
  hears({ position: 3 });
  commit(core);
  assert.deepEqual(await keys(), [4, 5], "from where its ward ends, what was sent before it broke among it");
});

Deno.test("an owner is sent nothing as long as a row is lost that it was to have, and then all of it (damage.ts G2)", async () => {
  const { core, hears, pends, keys } = source();
  hears({ position: 0 });
  for (const name of ["a", "b"]) pends(name);
  commit(core);
  const lost = packKey(["b"]);
  core.damage.healed([], [lost]);
  assert.equal(await keys(), null);
  core.rows.put(core.own(lost, new Uint8Array(4))); // it is written again
  const frozen = core.rows.freeze();
  core.rows.settle(frozen);
  core.damage.committed(frozen.changes);
  assert.deepEqual(await keys(), [1, 3]);
});

/** All that was applied is on the disk. */
function commit(core: Core): void {
  core.rows.settle(core.rows.freeze());
}

Deno.test("what is idle is told of a head at times, at once where somebody waits, and of another configuration", async () => {
  const { isDue, hears, send, pass } = source();
  hears({ position: 5 });
  assert.equal(isDue(5), true, "nothing was said under this configuration");
  await send(5);
  hears({ position: 5 });
  assert.deepEqual([isDue(5), isDue(6, true), isDue(6)], [false, true, false]);
  assert.equal(isDue(5, false, { config: 3, settled: true }), true);
  assert.equal(isDue(5, false, { config: 2, settled: false }), true);
  await pass(WARD_IDLE_MS);
  assert.deepEqual([isDue(5), isDue(6)], [false, true]);
});

Deno.test("an owner is told once what the root has of the rows that it holds, where nothing is written any more (L4)", async () => {
  const { isDue, hears, send, pass, reaches } = source();
  const row = (position: number) => ({ ...rowOf(100), position });
  hears({ position: 0 });
  await send(3, [row(1), row(2)]);
  hears({ position: 3 });
  const told = async (expected: boolean, says: string) => {
    await pass(WARD_IDLE_MS - 1);
    assert.equal(isDue(3), false, `${says}: not at once`);
    await pass(1);
    assert.equal(isDue(3), expected, says);
    if (!expected) return;
    await send(3);
    hears({ position: 3 });
  };
  await told(false, "the root has nothing of it");
  for (const [position, expected] of [[1, true], [1, false], [3, true], [3, false], [9, false]] as const) {
    await send(3);
    hears({ position: 3 });
    reaches(position);
    await told(expected, `the root is at ${position}`);
  }
  // It may hold what another process of this site has sent.
  hears({ refused: "gap", position: 12 });
  await send(12);
  hears({ position: 12 });
  await pass(WARD_IDLE_MS);
  assert.equal(isDue(12), false);
  reaches(10);
  assert.equal(isDue(12), true);
});

Deno.test("what was sent has the time that it takes on the narrowest line, and no more (L2)", async () => {
  for (
    const [bytes, lineBytes] of [[WARD_LINE_BYTES_PER_MS * 1_000, WARD_LINE_BYTES_PER_MS * 1_000], [
      2 * WARD_LINE_BYTES_UNDER_WAY,
      WARD_LINE_BYTES_UNDER_WAY,
    ]] as const
  ) {
    const { link, isDue, hears, send, pass } = source();
    hears({ position: 0 });
    await send(3, [rowOf(bytes)]);
    await pass(WARD_RESEND_MS + lineBytes / WARD_LINE_BYTES_PER_MS - 1);
    isDue(3);
    assert.equal(link.isStreaming, true, `${bytes} bytes are on their way`);
    await pass(2);
    isDue(3);
    assert.equal(link.isStreaming, false, `${bytes} bytes are late`);
  }
  const { link, isDue, hears, send, pass } = source();
  hears({ position: 0 });
  await send(3, [rowOf(WARD_LINE_BYTES_PER_MS * 1_000)]);
  hears({ position: 3 });
  await pass(WARD_RESEND_MS + 1);
  isDue(3);
  assert.equal(link.isStreaming, true, "nothing is waited for");
  await send(4);
  await pass(WARD_RESEND_MS + 1);
  isDue(4);
  assert.equal(link.isStreaming, false, "what is acknowledged takes no time");
});

Deno.test("a full owner is left alone, for longer each time, and while more is pending than it takes (L3)", async () => {
  const { core, link, isDue, pends, hears, pass } = source();
  hears({ position: 0 });
  pends("a");
  for (let forMs = 2 * WARD_FULL_MS; forMs < WARD_FULL_MS_MAX; forMs *= 2) {
    hears({ refused: "full" });
    assert.deepEqual([link.isStreaming, link.why], [false, "full"]);
    assert.equal(hears({ refused: "gap" }), false, "what followed on it says nothing");
    await pass(forMs - 1);
    assert.equal(isDue(1), false, `${forMs} ms`);
    await pass(1);
    assert.equal(isDue(1), true, `${forMs} ms`);
    hears({ position: 0 });
  }
  hears({ refused: "full" });
  const measure = core.pending.measure.bind(core.pending);
  core.pending.measure = () => ({ rows: 0, bytes: WARD_BYTES_MAX + 1 });
  await pass(WARD_FULL_MS_MAX);
  assert.equal(isDue(1), false, "what is pending does not fit");
  core.pending.measure = measure;
  await pass(WARD_FULL_MS_MAX);
  assert.equal(isDue(1), true);
  // What takes something of what it is sent has room.
  hears({ position: 0 });
  hears({ position: 1 });
  hears({ refused: "full" });
  await pass(2 * WARD_FULL_MS);
  assert.equal(isDue(1), true);
  hears({ refused: "full" });
  link.connected();
  assert.equal(isDue(1), true, "it came back");
});

Deno.test("an owner that lacks what was thought to be there is streamed to from where it ends", async () => {
  const { link, hears, send } = source();
  hears({ position: 8 });
  await send(9);
  hears({ position: 9 });
  assert.deepEqual([link.acked, link.settled, link.sentUpTo], [9, 2, 9]);
  assert.equal(hears({ refused: "gap", position: 4 }), true);
  assert.deepEqual([link.acked, link.settled, link.sentUpTo], [4, 0, 4]);
  hears({ position: 3, config: 1 });
  assert.deepEqual([link.acked, link.settled], [4, 1]);
  assert.equal(hears({ refused: "older" }), false);
  assert.deepEqual([link.isStreaming, link.why], [false, "older"]);
});
