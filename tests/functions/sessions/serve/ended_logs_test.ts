import assert from "node:assert/strict";
import { EndedLogs, type EndedLogsServices } from "../../../../functions/sessions/serve/ended_logs.ts";
import type { ShownCopy } from "../../../../functions/sessions/serve/log_view.ts";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";

const named = (id: string, app = "shop") => ({ app, class: "card", id });
const HOUR = 3_600_000;

function logOf(text: string, bytes = 1): ShownCopy {
  return {
    ...{ epoch: 3, version: text },
    checkpoint: { at: 7, bytes: new Uint8Array(bytes).fill(1) },
    log: [{ bytes: Uint8Array.of(1, 2) }, { bytes: Uint8Array.of(3) }],
  };
}

class Shelf {
  nowMs = 1_000_000;
  readonly storage = new MemoryStorage();
  readonly notes: string[] = [];
  readonly apps = new Set(["shop", "bank"]);

  open(more: Partial<EndedLogsServices> = {}): Promise<EndedLogs> {
    return EndedLogs.open({
      ...{ storage: this.storage, nowMs: () => this.nowMs, keptMsMax: HOUR },
      isApp: (app) => this.apps.has(app),
      note: (event, detail) => void this.notes.push(`${event} ${detail["why"]}`),
      ...more,
    });
  }
}

const read = (copy: ShownCopy) => () => Promise.resolve(copy);

Deno.test("the log of a session that ended is kept over a restart, as long as its site and its class say", async () => {
  const shelf = new Shelf();
  const logs = await shelf.open();
  await logs.keep(named("a"), undefined, read(logOf("v1")));
  await logs.keep(named("b"), HOUR / 2, read(logOf("v2")));
  await logs.keep(named("c"), 99 * HOUR, read(logOf("v3")));
  await logs.keep(named("never"), 0, () => assert.fail("what is not kept is not read"));
  for (const again of [logs, await shelf.open()]) {
    assert.deepEqual(await again.get(named("a")), { ...logOf("v1"), endedMs: 1_000_000 });
    assert.equal(await again.get(named("never")), null);
    assert.equal(again.size, 3);
  }
  shelf.nowMs += HOUR / 2;
  const later = await shelf.open();
  assert.equal(await later.get(named("b")), null, "its class wants no more");
  assert.notEqual(await later.get(named("c")), null);
  shelf.nowMs += HOUR / 2;
  assert.equal(await later.get(named("c")), null, "its site keeps none longer");
  await later.sweep();
  assert.equal(later.size, 0);
  assert.equal(await shelf.storage.bytes(), 0);
});

Deno.test("a name that ends again has its newest log, and one that is deleted none", async () => {
  const shelf = new Shelf();
  const logs = await shelf.open();
  await logs.keep(named("a"), undefined, read(logOf("v1", 100)));
  shelf.nowMs++;
  await logs.keep(named("a"), undefined, read(logOf("v2", 1)));
  assert.equal((await logs.get(named("a")))?.version, "v2");
  assert.equal(await logs.drop(named("a")), true);
  assert.equal(await logs.drop(named("a")), false);
  assert.equal(await logs.get(named("a")), null);
  assert.equal(await shelf.storage.bytes(), 0);
});

Deno.test("the oldest logs go when others need their room, those of an app that is gone with it (EL2)", async () => {
  const shelf = new Shelf();
  const logs = await shelf.open({ bytesMax: 3_500 });
  for (const id of ["a", "b", "c", "d"]) {
    shelf.nowMs++;
    await logs.keep(named(id), undefined, read(logOf(id, 1_000)));
  }
  assert.deepEqual([await logs.get(named("a")), (await logs.get(named("b")))?.version], [null, "b"]);
  assert.ok(await shelf.storage.bytes() < 4_000);
  const again = await shelf.open({ bytesMax: 3_500 });
  await again.keep(named("e", "bank"), undefined, read(logOf("e", 1_000)));
  assert.equal(await again.get(named("b")), null, "the order outlives a restart");
  shelf.apps.delete("bank");
  await again.sweep();
  assert.deepEqual([await again.get(named("e", "bank")), again.size], [null, 2]);
});

Deno.test("what can't be kept is noted, and its session ends as any other (EL1)", async () => {
  const shelf = new Shelf();
  const logs = await shelf.open();
  await logs.keep(named("big"), undefined, read(logOf("v1", 9 << 20)));
  await logs.keep(named("torn"), undefined, () => Promise.reject(new Error("a disk that fails")));
  shelf.storage.commit = () => Promise.reject(new Error("a disk that is full"));
  await logs.keep(named("full"), undefined, read(logOf("v1")));
  assert.match(shelf.notes.join("\n"), /it has 94\d+ bytes\n.*a disk that fails\n.*a disk that is full$/);
  assert.equal(await logs.get(named("full")), null);
});
