/** Storages of the format before, which had no checksums, as they are opened now. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import { Writer } from "../../store/model/codec.ts";
import { packKey } from "../../store/model/key.ts";
import type { Storage } from "../../store/model/ports.ts";
import { WHOLE } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { row, step } from "./storage_contract.ts";
import { openEngine } from "./storage_subjects.ts";

const PIECE = 61_440;
const big = new Uint8Array(150_000).map((_, i) => i % 251);
const ROWS: readonly Row[] = [
  row(packKey(["a"]), 3, "one", { clock: 99, replica: 7, known: 2, expiresAtMs: 1_900_000_000_000 }),
  row(packKey(["b"]), 4, null),
  row(packKey(["c", "x".repeat(1_500)]), 7, new Uint8Array()),
  row(packKey(["d"]), 9, big),
];
const RECORDS = new Map([["cursor", new Uint8Array([1, 2, 3])], ["coverage", big.subarray(0, 70_000)]]);
const bytesOf = (key: string) => Buffer.from(key, "latin1");

/** A folder as the format before left it; `upTo` of its rows were given their sums before a crash. */
const FORMER: Record<string, (folder: string) => Promise<void>> = {
  sqlite: (folder) => {
    const db = new DatabaseSync(`${folder}/rows.db`);
    db.exec(`PRAGMA journal_mode = WAL;
      CREATE TABLE rows(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, position INTEGER NOT NULL UNIQUE,
        clock INTEGER NOT NULL, replica INTEGER NOT NULL, known INTEGER NOT NULL, expires INTEGER NOT NULL, value BLOB);
      CREATE TABLE records(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
      CREATE TABLE totals(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
      INSERT INTO totals VALUES('bytes', 12), ('opened', 5);`);
    const put = db.prepare(
      "INSERT INTO rows(key, position, clock, replica, known, expires, value) VALUES(?, ?, ?, ?, ?, ?, ?)",
    );
    for (const { key, position, clock, replica, known, expiresAtMs, value } of ROWS) {
      put.run(bytesOf(key), position, clock, replica, known, expiresAtMs, value);
    }
    for (const [name, value] of RECORDS) db.prepare("INSERT INTO records VALUES(?, ?)").run(name, value);
    db.close();
    return Promise.resolve();
  },
  denokv: async (folder) => {
    const kv = await Deno.openKv(`${folder}/root.kv`);
    for (const each of ROWS) {
      const { key, position, clock, replica, known, expiresAtMs, value } = each;
      const pieces = (value?.length ?? 0) <= PIECE ? 0 : Math.ceil((value?.length ?? 0) / PIECE);
      const out = new Writer().uint(position).uint(clock).uint(replica).uint(known).uint(expiresAtMs);
      out.key(key.length > 1_000 ? key : "").flag(value !== null).uint(value?.length ?? 0).uint(pieces);
      if (value !== null && pieces === 0) out.bytes(value);
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytesOf(key))).subarray(0, 16);
      const at = key.length <= 1_000 ? ["r", bytesOf(key)] : ["r", bytesOf(key).subarray(0, 1_000), hash];
      await kv.set(at, out.done());
      await kv.set(["j", position], bytesOf(key));
      for (let i = 0; i < pieces; i++) {
        await kv.set(["c", position, i], value?.subarray(i * PIECE, (i + 1) * PIECE));
      }
    }
    for (const [name, value] of RECORDS) {
      const pieces = value.length <= PIECE ? 0 : 2;
      await kv.set(
        ["m", name],
        new Writer().uint(pieces).bytes(pieces === 0 ? value : new Uint8Array()).done(),
      );
      for (let i = 0; i < pieces; i++) {
        await kv.set(["n", name, i], value.subarray(i * PIECE, (i + 1) * PIECE));
      }
    }
    await kv.set(["t"], new Writer().uint(12).done());
    kv.close();
  },
};

const plain = (rows: readonly (Row | undefined)[]) =>
  rows.map((each) => each && { ...each, value: each.value && Buffer.from(each.value).toString("base64") });

async function holdsAll(storage: Storage): Promise<void> {
  assert.deepEqual(plain(await storage.scan(WHOLE)), plain(ROWS));
  assert.deepEqual(plain(await storage.journal(0, 100, 100)), plain(ROWS));
  assert.deepEqual(plain(await storage.getMany(ROWS.map(({ key }) => key))), plain(ROWS));
  assert.deepEqual(await storage.load(), RECORDS);
  assert.equal(
    await storage.bytes(),
    ROWS.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0),
  );
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a folder of the format before is taken over whole, and is of the new one then`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-former-" });
    try {
      await Deno.writeTextFile(`${folder}/SOJOURN`, `sojourn storage: ${engine} 1\n`);
      await FORMER[engine]?.(folder);
      const storage = await openEngine(engine, folder);
      await holdsAll(storage);
      assert.equal(await Deno.readTextFile(`${folder}/SOJOURN`), `sojourn storage: ${engine} 2\n`);
      await storage.commit(step([row(packKey(["a"]), 10, "two")]));
      await storage.close();
      const again = await openEngine(engine, folder);
      assert.equal((await again.get(packKey(["a"])))?.position, 10);
      await again.close();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });

  Deno.test(`storage: ${engine}: what a crash left half way of that is taken over, too`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-former-" });
    try {
      await Deno.writeTextFile(`${folder}/SOJOURN`, `sojourn storage: ${engine} 1\n`);
      await FORMER[engine]?.(folder);
      await (await openEngine(engine, folder)).close();
      // All of it was done, and its mark was not written.
      await Deno.writeTextFile(`${folder}/SOJOURN`, `sojourn storage: ${engine} 1\n`);
      const storage = await openEngine(engine, folder);
      await holdsAll(storage);
      await storage.close();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
