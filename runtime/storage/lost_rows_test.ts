/** Rows of a file of which a part is gone: what of it can be made again, and what is an error. */
import { strict as assert } from "node:assert";
import { DatabaseSync } from "node:sqlite";
import { type Key, packKey } from "../../store/model/key.ts";
import type { DiskCommit } from "../../store/model/ports.ts";
import { WHOLE } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { openDenoKv } from "./denokv.ts";
import { openSqlite } from "./sqlite.ts";

const rowAt = (position: number, bytes = 10, fill = position): Row => ({
  ...{
    key: packKey(["k", position]) as Key,
    position,
    clock: position,
    replica: 1,
    known: 0,
    expiresAtMs: 0,
  },
  value: new Uint8Array(bytes).fill(fill),
});
const stepOf = (...rows: Row[]): DiskCommit => ({ rows, drop: [], records: new Map() });

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const place = await Deno.makeTempDir({ prefix: "sojourn-lost-" });
  try {
    await run(`${place}/rows`);
  } finally {
    await Deno.remove(place, { recursive: true });
  }
}

/** Removes entries of a closed Deno KV database. */
async function without(folder: string, isGone: (key: Deno.KvKey) => boolean): Promise<void> {
  const kv = await Deno.openKv(`${folder}/root.kv`);
  let gone = 0;
  for await (const { key } of kv.list({ prefix: [] })) {
    if (!isGone(key)) continue;
    await kv.delete(key);
    gone++;
  }
  kv.close();
  assert.equal(gone, 1);
}

/** Key of a row, by its last part. */
const isRow = (key: Deno.KvKey, n: number) =>
  key[0] === "r" &&
  Deno.inspect(key[1]) === Deno.inspect(Uint8Array.from(packKey(["k", n]), (c) => c.charCodeAt(0)));

Deno.test("denokv: a journal entry that is gone is made again, and a row that is gone is named by the journal (DC1)", () =>
  withFolder(async (folder) => {
    const first = await openDenoKv({ folder });
    await first.commit(stepOf(rowAt(1), rowAt(2), rowAt(3)));
    await first.close();
    await without(folder, (key) => key[0] === "j" && Number(key[1]) === 2);
    for (let open = 0; open < 2; open++) {
      const mended = await openDenoKv({ folder });
      assert.deepEqual(await mended.journal(0, 9, 9), [1, 2, 3].map((n) => rowAt(n)));
      await mended.close();
    }
    await without(folder, (key) => isRow(key, 3));
    for (let open = 0; open < 2; open++) {
      const lacking = await openDenoKv({ folder });
      await assert.rejects(lacking.get(rowAt(3).key), { name: "DamagedRows" });
      await assert.rejects(lacking.scan(WHOLE), { name: "DamagedRows" });
      assert.deepEqual(await lacking.get(rowAt(2).key), rowAt(2));
      await lacking.close();
    }
  }));

Deno.test("denokv: a row that is gone with its journal entry is an error (DC2)", () =>
  withFolder(async (folder) => {
    const first = await openDenoKv({ folder });
    await first.commit(stepOf(rowAt(1), rowAt(2), rowAt(3)));
    await first.close();
    await without(folder, (key) => key[0] === "j" && Number(key[1]) === 2);
    await without(folder, (key) => isRow(key, 2));
    await assert.rejects(openDenoKv({ folder }), { code: "disk_failed" });
  }));

Deno.test("sqlite: a row that is gone is an error (SC2)", () =>
  withFolder(async (folder) => {
    const first = openSqlite(folder);
    await first.commit(stepOf(rowAt(1), rowAt(2), rowAt(3)));
    await first.close();
    const database = new DatabaseSync(`${folder}/rows.db`);
    assert.equal(database.prepare("DELETE FROM rows WHERE position = 2").run().changes, 1);
    database.close();
    assert.throws(() => openSqlite(folder), { code: "disk_failed" });
  }));

Deno.test("denokv: a row that is overwritten while it is read is one that was put, whole (denokv_reader.ts R1)", () =>
  withFolder(async (folder) => {
    const storage = await openDenoKv({ folder });
    const BYTES = 200_000, key = packKey(["large"]) as Key;
    const put = (position: number) =>
      storage.commit(stepOf({ ...rowAt(position, BYTES, position % 251), key }));
    await put(1);
    let isOver = false, reads = 0;
    const reading = Promise.all(Array.from({ length: 3 }, async () => {
      while (!isOver) {
        const found = await Promise.all([storage.get(key), storage.scan(WHOLE).then(([row]) => row)])
          .catch((error) => {
            // A reader gives up where the row is another one each time: that is said, and nothing wrong is shown.
            assert.match(String(error), /overwritten again and again/);
            return [];
          });
        for (const row of found) {
          assert.equal(row?.value?.length, BYTES);
          assert.ok(row.value.every((byte) => byte === row.position % 251), `a mixture, at ${row.position}`);
          reads++;
        }
      }
    }));
    for (let position = 2; position <= 60; position++) {
      await put(position);
      await new Promise((resolve) => setTimeout(resolve, 3)); // a read takes a moment, too
    }
    isOver = true;
    await reading;
    assert.ok(reads > 20, `${reads} reads`);
    await storage.close();
  }));
