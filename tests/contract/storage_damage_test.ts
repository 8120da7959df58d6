/**
 * S4 on disks that change bytes by themselves: a storage is written and closed, or killed; then bytes of its files are
 * flipped, blanked or cut off at drawn places, and it is opened again. Every row must read as it was put, or not at
 * all: as damaged, as an error, or because the storage says that it went back.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { rowBytes } from "../../runtime/storage/memory.ts";
import { type Key, packKey } from "../../store/key.ts";
import { DamagedRows, type Storage } from "../../store/ports.ts";
import { WHOLE } from "../../store/range.ts";
import type { Row } from "../../store/row.ts";
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
  Deno.test(`storage: ${engine}: a damaged row is named until it is put or dropped, and then gone for good (S4)`, async () => {
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
        assert.equal(await storage.bytes(), [again, whole].reduce((sum, each) => sum + rowBytes(each), 0));
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

Deno.test("storage: sqlite: a part of the file that is older than the rest is never believed (SC3)", async () => {
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
