/**
 * S4 on disks that change bytes by themselves: a storage is written and closed, or killed; then bytes of its files are
 * flipped, blanked or cut off at drawn places, and it is opened again. Every row must read as it was put, or not at
 * all: as damaged, as an error, or because the storage says that it went back.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import { countedBytes } from "../../runtime/storage/memory.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import { DamagedRows, type Storage } from "../../store/model/ports.ts";
import { WHOLE } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { Draws } from "../sim/random.ts";
import { row, step } from "./storage_contract.ts";
import { openEngine } from "./storage_subjects.ts";

const DAMAGES = Number(Deno.env.get("SOJOURN_DAMAGES") ?? 60);
const ROWS = 300;

/** What a storage holds at the end. */
async function fill(storage: Storage, draws: Draws): Promise<Map<Key, Row>> {
  const rows = new Map<Key, Row>();
  let position = 0;
  for (let commit = 0; commit < 40; commit++) {
    const put: Row[] = [], drop: Key[] = [];
    for (let i = draws.integer(1, 25); i > 0; i--) {
      const key = packKey(["app", "table", draws.integer(0, ROWS)]);
      if (draws.chance(0.1)) drop.push(key);
      const value = draws.chance(0.1) ? null : draws.bytes(draws.pick([0, 8, 100, 900]));
      put.push(row(key, ++position, value, { known: draws.integer(0, 3) }));
    }
    for (const key of drop) rows.delete(key);
    for (const each of put) rows.set(each.key, each);
    await storage.commit(
      step(put, drop, [["cursor", draws.bytes(20)], [`coverage/${commit}`, draws.bytes(9)]]),
    );
  }
  return rows;
}

/** Changes one file in one way; says what it did. */
async function damage(folder: string, draws: Draws): Promise<string> {
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
    !/^(lock|SOJOURN)$|-shm$/.test(name)
  ).sort();
  // Larger files are hit more often, as on a disk.
  const sizes = names.map((name) => Deno.statSync(`${folder}/${name}`).size);
  let at = draws.integer(0, Math.max(0, sizes.reduce((a, b) => a + b, 0) - 1));
  const index = sizes.findIndex((size) => (at -= size) < 0);
  const name = names[Math.max(0, index)] ?? "", path = `${folder}/${name}`;
  const bytes = await Deno.readFile(path);
  if (bytes.length === 0) return "nothing";
  const from = draws.integer(0, bytes.length - 1);
  const kind = draws.pick(["flip", "flip", "flip", "blank", "cut", "gone"]);
  if (kind === "flip") {
    const count = draws.pick([1, 1, 3, 25]);
    for (let i = from; i < Math.min(bytes.length, from + count); i++) {
      bytes[i] = (bytes[i] ?? 0) ^ draws.integer(1, 255);
    }
  } else if (kind === "blank") bytes.fill(0, from, from + 512);
  if (kind === "gone") await Deno.remove(path);
  else await Deno.writeFile(path, kind === "cut" ? bytes.slice(0, from) : bytes);
  return `${kind} ${name} at ${from} of ${bytes.length}`;
}

const bytesOf = (value: Uint8Array | null | undefined): string => value ? value.toHex() : `${value}`;

/** What is wrong with what a storage answers. */
async function wrongAnswers(storage: Storage, rows: ReadonlyMap<Key, Row>): Promise<string[]> {
  const wrong: string[] = [];
  const compare = (how: string, key: Key, found: Row | undefined) => {
    const put = rows.get(key);
    const isSame = found?.position === put?.position && found?.clock === put?.clock &&
      found?.known === put?.known &&
      bytesOf(found?.value) === bytesOf(put?.value);
    if (!isSame) wrong.push(`${how}: ${found === undefined ? "absent" : "another"}`);
  };
  const damaged = new Set<Key>();
  const asked = async <T>(look: () => Promise<T>): Promise<T | null> => {
    try {
      return await look();
    } catch (error) {
      if (error instanceof DamagedRows) { for (const key of error.keys) damaged.add(key); }
      return null;
    }
  };
  for (const key of rows.keys()) {
    const found = await asked(async () => [await storage.get(key)]);
    if (found !== null) compare("get", key, found[0]);
  }
  const scanned = await asked(() => storage.scan(WHOLE));
  if (scanned !== null) {
    const found = new Map(scanned.map((each) => [each.key, each]));
    for (const key of new Set([...rows.keys(), ...found.keys()])) compare("scan", key, found.get(key));
  }
  const journal = await asked(() => storage.journal(0, 1e15, Infinity));
  if (journal !== null) {
    const found = new Map(journal.map((each) => [each.key, each]));
    for (const key of new Set([...rows.keys(), ...found.keys()])) compare("journal", key, found.get(key));
  }
  return wrong;
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a disk that changes bytes by itself is never believed (S4)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-damage-" });
    const wrong: string[] = [];
    const outcomes = { whole: 0, damaged: 0, refused: 0, wentBack: 0 };
    try {
      for (let round = 0; round < DAMAGES; round++) {
        const draws = new Draws(`${engine} ${round}`);
        const place = `${folder}/${round}`;
        const first = await openEngine(engine, place);
        const rows = await fill(first, draws);
        // Killed: the files as they are while the storage is open.
        const isKilled = draws.chance(0.5), left = `${folder}/left`;
        if (!isKilled) await first.close();
        await copy(place, left);
        if (isKilled) await first.close();
        const what = await damage(left, draws);
        try {
          const storage = await openEngine(engine, left);
          try {
            await storage.load().catch(() => {});
            if ("wentBack" in storage && storage.wentBack) outcomes.wentBack++;
            else {
              const found = await wrongAnswers(storage, rows);
              for (const each of new Set(found)) {
                wrong.push(`${round} ${isKilled ? "killed" : "closed"} ${what}: ${each}`);
              }
              outcomes.whole++;
            }
          } finally {
            await storage.close();
          }
        } catch {
          outcomes.refused++;
        }
        await Deno.remove(left, { recursive: true });
        await Deno.remove(place, { recursive: true });
      }
      assert.deepEqual(wrong, []);
      assert.ok(
        outcomes.whole > 0 && outcomes.refused > 0 && outcomes.wentBack > 0,
        JSON.stringify(outcomes),
      );
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

/** Flips 25 bytes in the middle of a value, wherever it lies in the files of a folder. */
async function rot(folder: string, value: Uint8Array): Promise<void> {
  let found = 0;
  for await (const { name, isFile } of Deno.readDir(folder)) {
    if (!isFile) continue;
    const bytes = Buffer.from(await Deno.readFile(`${folder}/${name}`));
    for (let at = bytes.indexOf(value); at >= 0; at = bytes.indexOf(value, at + 1)) {
      for (let i = at + 20; i < at + 45; i++) bytes[i] = (bytes[i] ?? 0) ^ 0x5a;
      found++;
    }
    await Deno.writeFile(`${folder}/${name}`, bytes);
  }
  assert.ok(found > 0, "the value is in the files");
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a damaged row is named until it is put or dropped, and then gone for good (S4, sqlite.ts Q5, denokv.ts K5, denokv_reader.ts R2, sqlite_check.ts SC1)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-damage-" });
    const draws = new Draws("named");
    const keys = [0, 1, 2, 3].map((i) => packKey(["app", "table", i]));
    const rows = keys.map((key, i) => row(key, i + 1, draws.bytes(i === 3 ? 90_000 : 100)));
    const [put, dropped, whole, large] = rows;
    assert.ok(put && dropped && whole && large);
    const bad = [put, dropped, large];
    const named = (keys: readonly Key[]) => (error: unknown) =>
      error instanceof DamagedRows && [...error.keys].sort().join() === [...keys].sort().join();
    try {
      const first = await openEngine(engine, folder);
      await first.commit(step(rows, [], []));
      await first.close();
      for (const { value } of bad) await rot(folder, (value ?? new Uint8Array()).subarray(0, 100));
      for (let open = 0; open < 2; open++) {
        const storage = await openEngine(engine, folder);
        await assert.rejects(storage.scan(WHOLE), named(bad.map(({ key }) => key)));
        await assert.rejects(storage.journal(0, 10, 10), named(bad.map(({ key }) => key)));
        for (const { key } of bad) await assert.rejects(storage.get(key), named([key]));
        assert.deepEqual(await storage.getMany([whole.key]), [whole]);
        await storage.close();
      }
      const storage = await openEngine(engine, folder);
      const again = row(put.key, 9, draws.bytes(50));
      await storage.commit(step([again], [dropped.key, large.key], []));
      const check = async (storage: Storage) => {
        assert.deepEqual(await storage.scan(WHOLE), [again, whole]);
        assert.deepEqual(await storage.journal(0, 10, 10), [whole, again]);
        assert.equal(
          await storage.bytes(),
          [again, whole].reduce((sum, each) => sum + countedBytes(each), 0),
        );
      };
      await storage.close();
      for (let open = 0; open < 2; open++) {
        const reopened = await openEngine(engine, folder);
        await check(reopened);
        await reopened.close();
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

async function copy(from: string, to: string): Promise<void> {
  await Deno.mkdir(to);
  for await (const { name } of Deno.readDir(from)) {
    if (name !== "lock" && !name.endsWith("-shm")) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

Deno.test("storage: sqlite: a part of the file that is older than the rest is never believed (sqlite_check.ts SC3)", async () => {
  const lost: string[] = [];
  for (const count of [20, 100, 400]) {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-stale-" });
    const keyOf = (i: number) => packKey(["app", i]), rows = new Map<Key, Row>();
    let position = 0;
    const put = async (storage: Storage, i: number) => {
      const one = row(keyOf(i), ++position, new Uint8Array(400).fill(position), {});
      rows.set(one.key, one);
      await storage.commit(step([one], [], [["cursor", new Uint8Array([position])]]));
    };
    const first = await openEngine("sqlite", folder);
    for (let i = 0; i < count; i++) await put(first, i);
    await first.close(); // all is in the one file
    const older = await Deno.readFile(`${folder}/rows.db`);
    const second = await openEngine("sqlite", folder);
    for (let i = 0; i < count; i += 2) await put(second, i);
    await second.close();
    const third = await openEngine("sqlite", folder);
    await put(third, 1);
    const log = await Deno.readFile(`${folder}/rows.db-wal`);
    await third.close();
    // As where the disk has lost what the second wrote to the file, and kept the log of the third.
    await Deno.writeFile(`${folder}/rows.db`, older);
    await Deno.writeFile(`${folder}/rows.db-wal`, log);
    try {
      const again = await openEngine("sqlite", folder);
      for (const each of rows.values()) assert.deepEqual(await again.get(each.key), each);
      await again.close();
    } catch (error) {
      assert.ok(
        error instanceof Error && /older than what was put there last/.test(error.message),
        String(error),
      );
      lost.push(error.message);
    }
    await Deno.remove(folder, { recursive: true });
  }
  assert.ok(lost.length > 0);
});

/** Puts the entries of a Deno KV database that begin with one of some letters back to what they were in another file. */
function putBack(path: string, older: string, letters: readonly string[]): void {
  const db = new DatabaseSync(path);
  try {
    db.exec(`ATTACH '${older}' AS older`);
    for (const letter of letters) {
      const first = Buffer.concat([Buffer.of(2), Buffer.from(letter), Buffer.of(0)]).toString("hex");
      const where = `WHERE substr(k, 1, 3) = x'${first}'`;
      db.exec(`DELETE FROM main.kv ${where}; INSERT INTO main.kv SELECT * FROM older.kv ${where}`);
    }
  } finally {
    db.close();
  }
}

for (const [what, letters] of [["rows", ["r", "j", "c"]], ["records", ["m", "n"]]] as const) {
  Deno.test(`storage: denokv: ${what} that are older than the rest of the file are never believed (DC3)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-stale-" });
    const path = `${folder}/root.kv`, older = `${folder}-older.kv`;
    const first = await openEngine("denokv", folder);
    const large = new Uint8Array(100_000);
    for (let i = 1; i <= 5; i++) {
      await first.commit(
        step([row(packKey(["app", i]), i, large.fill(i), {})], [], [["cursor", Uint8Array.of(i)]]),
      );
    }
    await first.close();
    await Deno.copyFile(path, older);
    const second = await openEngine("denokv", folder);
    await second.commit(step([row(packKey(["app", 3]), 6, new Uint8Array(10), {})], [], []));
    await second.commit(step([], [], [["cursor", Uint8Array.of(9)]]));
    await second.close();
    const third = await openEngine("denokv", folder); // all of it fits
    await third.close();
    putBack(path, older, letters);
    await assert.rejects(openEngine("denokv", folder), /older than what was put there last/);
    await Deno.remove(folder, { recursive: true });
    await Deno.remove(older);
  });
}

Deno.test("storage: denokv: what is mended, and what a version before has written on, is counted as it is (DC3)", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-content-" });
  const path = `${folder}/root.kv`, key = packKey(["app", 2]);
  const storage = await openEngine("denokv", folder);
  for (let i = 1; i <= 4; i++) {
    await storage.commit(step([row(packKey(["app", i]), i, new Uint8Array(100).fill(7), {})], [], []));
  }
  await storage.close();
  const spoil = (sql: string) => {
    const db = new DatabaseSync(path);
    assert.equal(db.prepare(sql).run().changes, 1);
    db.close();
  };
  // The row at position 2 is damaged; then its entry in the journal, too, while it is open.
  spoil(
    "UPDATE kv SET v = CAST(x'00' || v AS BLOB) WHERE k = (SELECT k FROM kv WHERE substr(k, 1, 3) = x'027200' ORDER BY k LIMIT 1 OFFSET 1)",
  );
  for (const isLost of [false, true]) {
    const again = await openEngine("denokv", folder);
    await assert.rejects(again.get(key), DamagedRows);
    if (isLost) {
      spoil(
        "DELETE FROM kv WHERE k = (SELECT k FROM kv WHERE substr(k, 1, 3) = x'026a00' ORDER BY k LIMIT 1 OFFSET 1)",
      );
    }
    if (isLost) await again.commit(step([row(key, 9, new Uint8Array(3), {})], [], []));
    else await again.commit(step([], [], [["cursor", Uint8Array.of(1)]]));
    await again.close();
  }
  const mended = await openEngine("denokv", folder);
  assert.deepEqual((await mended.get(key))?.position, 9);
  await mended.close();
  // A version before counts commits, and leaves the sum as it was.
  const kv = await Deno.openKv(path);
  const at = await kv.get<Uint8Array>(["s"]);
  assert.notEqual(at.value, null);
  kv.close();
  const next = await openEngine("denokv", folder);
  await next.commit(step([row(key, 10, new Uint8Array(3), {})], [], []));
  await next.close();
  const former = await Deno.openKv(path);
  await former.set(["s"], at.value);
  former.close();
  const last = await openEngine("denokv", folder);
  assert.deepEqual((await last.get(key))?.position, 10);
  await last.close();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("storage: denokv: columns of the file that Deno KV can't read end no process, and hide nothing (DC4)", async () => {
  const columns = [
    "v_encoding = 2", // eight bytes: Deno 2.9 panics as it reads others
    "v_encoding = 1",
    "v_encoding = 7",
    "v_encoding = 'x'",
    "v = CAST(v AS TEXT)",
    "v = 5",
    "version = 'x'",
    "expiration_ms = 1", // it would be deleted
  ];
  for (const letter of ["r", "j", "m", "t", "s"]) {
    for (const column of columns) {
      const what = `${letter} ${column}`;
      const folder = await Deno.makeTempDir({ prefix: "sojourn-columns-" });
      const keys = [1, 2, 3, 4].map((i) => packKey(["app", i])), cursor = Uint8Array.of(0xc3, 0x28);
      const storage = await openEngine("denokv", folder);
      const put = keys.map((key, i) => row(key, i + 1, new Uint8Array(100).fill(0xc3), {}));
      for (const each of put) await storage.commit(step([each], [], [["cursor", cursor]]));
      await storage.close();
      const db = new DatabaseSync(`${folder}/root.kv`), place = Buffer.from(letter).toString("hex");
      const at = `SELECT k FROM kv WHERE substr(k, 1, 3) = x'02${place}00' LIMIT 1`;
      assert.equal(db.prepare(`UPDATE kv SET ${column} WHERE k = (${at})`).run().changes, 1, what);
      db.close();
      const isGone = column === "v = 5";
      const again = await openEngine("denokv", folder).catch((error: Error) => {
        assert.ok(
          isGone && letter === "m" && /the record .* is damaged/.test(error.message),
          `${what}: ${error.message}`,
        );
        return null;
      });
      for (const each of again === null ? [] : put) {
        const found = await again?.get(each.key).catch((error: unknown) => {
          assert.ok(isGone && letter === "r" && error instanceof DamagedRows, `${what}: ${error}`);
          return each; // named, and not shown
        });
        assert.deepEqual(found, each, what);
      }
      if (again !== null) assert.deepEqual((await again.load()).get("cursor"), cursor, what);
      await again?.close();
      await Deno.remove(folder, { recursive: true });
    }
  }
});

Deno.test("storage: sqlite: text for bytes, and numbers that are none, hide no row and are no answer (sqlite_check.ts SC4)", async () => {
  const same = ["key = CAST(key AS TEXT)", "value = CAST(value AS TEXT)", "expires = x'31'"];
  const named = [
    "value = 5",
    "value = 1.5",
    "clock = 9007199254740993",
    "clock = 'x'",
    "sum = NULL",
  ];
  for (const column of [...same, ...named]) {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-columns-" });
    const storage = await openEngine("sqlite", folder), put: Row[] = [];
    for (let i = 1; i <= 4; i++) {
      const one = row(packKey(["app", i]), i, new Uint8Array(100).fill(65), { expiresAtMs: i });
      put.push(one);
      await storage.commit(step([one], [], []));
    }
    await storage.close();
    const db = new DatabaseSync(`${folder}/rows.db`);
    db.exec(`UPDATE rows SET ${column} WHERE position = 1`);
    db.close();
    const again = await openEngine("sqlite", folder);
    for (const each of put) {
      const isNamed = each.position === 1 && named.includes(column);
      const reads = [
        again.get(each.key),
        again.journal(each.position - 1, each.position, 1).then(([one]) => one),
      ];
      for (const read of reads) {
        if (isNamed) await assert.rejects(read, DamagedRows, column);
        else assert.deepEqual(await read, each, column);
      }
    }
    await again.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("storage: sqlite: a record whose name or value has become another type is what it was (sqlite_check.ts SC4)", async () => {
  for (const column of ["name = CAST(name AS BLOB)", "value = CAST(value AS TEXT)"]) {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-columns-" });
    const storage = await openEngine("sqlite", folder);
    await storage.commit(step([], [], [["cursor", Uint8Array.of(65)]]));
    await storage.close();
    const db = new DatabaseSync(`${folder}/rows.db`);
    db.exec(`UPDATE records SET ${column}`);
    db.close();
    for (const value of [65, 66]) {
      const again = await openEngine("sqlite", folder);
      assert.deepEqual([...await again.load()], [["cursor", Uint8Array.of(value)]], column);
      await again.commit(step([], [], [["cursor", Uint8Array.of(66)]]));
      await again.close();
    }
    await Deno.remove(folder, { recursive: true });
  }
});
