/** Writes of several mutations, merges among them: each goes on from what those before it write, and all or none is applied. */
import assert from "node:assert/strict";
import { decodeValue, encodeValue } from "../../../functions/values/value.ts";
import { KvU64 } from "../../../functions/values/kv_u64.ts";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { SystemRandom } from "../../../runtime/site/system_ports.ts";
import type { AttachedSession, StoreMutation } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";
import { openReplica } from "../../../store/replica.ts";

const key = packKey(["a", "shop", "kv", "n"]);
const other = packKey(["a", "shop", "kv", "m"]);
const u64 = (n: bigint) => encodeValue(new KvU64(n));

async function withSession(body: (session: AttachedSession, clock: { nowMs: number }) => Promise<void>) {
  const clock = { nowMs: 1_800_000_000_000 };
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    ...{ random: new SystemRandom(), storage: new MemoryStorage() },
    clock: {
      nowMs: () => clock.nowMs,
      steadyMs: () => clock.nowMs,
      after: () => () => {},
      turn: () => new Promise((done) => setImmediate(done)),
    },
    network: { send: () => Promise.resolve() },
    note: () => {},
    fatal: (error) => {
      throw error;
    },
  });
  await replica.ready;
  await body(await replica.attach(null), clock);
  await replica.close();
}

const read = async (session: AttachedSession, of = key) => {
  const [row] = await session.get([of]);
  return row?.value ? decodeValue(row.value) : null;
};

Deno.test("a merge goes on from what the same write sets or deletes, whatever stood there", () =>
  withSession(async (session) => {
    await session.write([{ kind: "set", key, value: encodeValue("text") }]);
    const sum = (n: bigint): StoreMutation => ({ kind: "sum", key, value: u64(n) });
    assert.ok((await session.write([{ kind: "delete", key }, sum(3n)])).ok);
    assert.deepEqual(await read(session), new KvU64(3n));
    assert.ok((await session.write([sum(1n), { kind: "set", key, value: u64(10n) }, sum(2n), sum(5n)])).ok);
    assert.deepEqual(await read(session), new KvU64(17n));
    assert.ok((await session.write([sum(1n), { kind: "delete", key }])).ok);
    assert.equal(await read(session), null);
  }));

Deno.test("a write with a merge that can't be done leaves nothing of itself", () =>
  withSession(async (session) => {
    await session.write([{ kind: "set", key, value: u64(5n) }]);
    const before = session.highest;
    await assert.rejects(
      session.write([
        { kind: "set", key: other, value: encodeValue(1) },
        { kind: "set", key, value: encodeValue("text") },
        { kind: "sum", key, value: u64(2n) },
      ]),
      { code: "value_type" },
    );
    assert.deepEqual([await read(session), await read(session, other)], [new KvU64(5n), null]);
    assert.equal(session.highest, before);
  }));

Deno.test("a merge onto what has expired begins anew", () =>
  withSession(async (session, clock) => {
    await session.write([{ kind: "set", key, value: u64(5n), expiresAtMs: clock.nowMs + 10 }]);
    clock.nowMs += 20;
    await session.write([{ kind: "sum", key, value: u64(3n) }]);
    assert.deepEqual(await read(session), new KvU64(3n));
  }));
