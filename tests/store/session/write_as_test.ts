/** Rows under a version that was drawn for them once. */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { SystemRandom } from "../../../runtime/site/system_ports.ts";
import { packKey } from "../../../store/model/key.ts";
import { openReplica } from "../../../store/replica.ts";

async function setUp() {
  const storage = new MemoryStorage();
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    ...{ random: new SystemRandom(), storage },
    clock: {
      nowMs: Date.now,
      steadyMs: Date.now,
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
  return { replica, session: await replica.attach(null) };
}

const key = packKey(["a", "shop", "kv", "x"]);
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array | null | undefined) => value ? new TextDecoder().decode(value) : null;

Deno.test("a row that is written again under its version is the same row, and none of its own", async () => {
  const { replica, session } = await setUp();
  const version = { clock: session.tick(), replica: replica.status().replica };
  await session.writeAs([{ kind: "set", key, value: bytes("one") }], version);
  const { position } = replica.status();
  await session.writeAs([{ kind: "set", key, value: bytes("one") }], version);
  assert.equal(replica.status().position, position);
  const [row] = await session.get([key]);
  assert.deepEqual([text(row?.value), row?.clock, row?.replica], ["one", version.clock, version.replica]);
  assert.ok(session.highest >= (row?.position ?? Infinity));
  await replica.close();
});

Deno.test("what was written since stays, and a tick is nobody else's version", async () => {
  const { replica, session } = await setUp();
  const version = { clock: session.tick(), replica: replica.status().replica };
  const newer = await session.write([{ kind: "set", key, value: bytes("newer") }]);
  assert.ok(newer.ok && newer.version.clock > version.clock);
  await session.writeAs([{ kind: "delete", key }], version);
  assert.equal(text((await session.get([key]))[0]?.value), "newer");
  const later = { clock: session.tick(), replica: replica.status().replica };
  await session.writeAs([{ kind: "delete", key }], later);
  assert.equal((await session.get([key]))[0], undefined);
  await replica.close();
});

Deno.test("rows of another site's version are pushed on as any, and a token names them", async () => {
  const { replica, session } = await setUp();
  await session.writeAs([{ kind: "set", key, value: bytes("theirs") }], {
    clock: session.tick(),
    replica: 77,
  });
  assert.equal((await session.get([key]))[0]?.replica, 77);
  const before = replica.status().position;
  assert.equal(session.token(false).path.at(-1), before);
  await session.durable();
  await replica.close();
});

Deno.test("rows of a version from the far future are refused, and move no clock", async () => {
  const { replica, session } = await setUp();
  const before = session.tick();
  for (const clock of [before + 1e12, Number.MAX_SAFE_INTEGER]) {
    await assert.rejects(
      session.writeAs([{ kind: "set", key, value: bytes("forged") }], { clock, replica: 77 }),
      { code: "source_unreachable" },
    );
  }
  assert.equal((await session.get([key]))[0], undefined);
  assert.ok(session.tick() < before + 1e11);
  await replica.close();
});
