import { strict as assert } from "node:assert";
import { type Key, packKey } from "../../store/model/key.ts";
import type { DiskCommit, Storage } from "../../store/model/ports.ts";
import { CommitCount } from "./commit_count.ts";
import { openDenoKv } from "./denokv.ts";
import { openSqlite } from "./sqlite.ts";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-count-" });
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const lastIn = (...paths: string[]): number => {
  const count = new CommitCount(...paths);
  count.close();
  return count.last;
};

Deno.test("a count that was torn, or is none, proves nothing (CC2)", () =>
  withFolder(async (folder) => {
    const path = `${folder}/commits`;
    assert.equal(lastIn(path), 0, "there was none");
    const count = new CommitCount(path);
    count.set(7);
    count.close();
    assert.equal(lastIn(path), 7);
    const whole = await Deno.readFile(path);
    for (let length = 0; length < whole.length; length++) {
      await Deno.writeFile(path, whole.subarray(0, length));
      assert.equal(lastIn(path), 0, `${length} bytes`);
    }
    for (let at = 0; at < whole.length; at++) {
      await Deno.writeFile(path, whole.with(at, (whole[at] ?? 0) ^ 0x10));
      assert.equal(lastIn(path), 0, `byte ${at}`);
    }
  }));

Deno.test("of two files the one that counted more is believed (CC3)", () =>
  withFolder(async (folder) => {
    const own = `${folder}/own`, other = `${folder}/other`;
    const both = new CommitCount(own, other);
    both.set(3);
    const older = await Deno.readFile(own);
    both.set(9);
    both.close();
    await Deno.writeFile(own, older);
    assert.deepEqual([lastIn(own), lastIn(other), lastIn(own, other)], [3, 9, 9]);
  }));

function commitOf(position: number): DiskCommit {
  const row = {
    ...{
      key: packKey(["k", position]) as Key,
      position,
      clock: position,
      replica: 1,
      known: 0,
      expiresAtMs: 0,
    },
    value: new Uint8Array(10),
  };
  return { rows: [row], drop: [], records: new Map() };
}

const ENGINES: readonly (readonly [
  name: string,
  open: (folder: string, witness: string) => Promise<Storage & { readonly wentBack: boolean }>,
])[] = [
  ["sqlite.ts Q6", (folder, witness) => Promise.resolve(openSqlite(folder, {}, witness))],
  ["denokv.ts K6", (folder, witness) => openDenoKv({ folder, witness })],
];

for (const [rule, open] of ENGINES) {
  Deno.test(`a folder that is an older copy is found out by the file beside it, and one that is not is believed (CC3; ${rule})`, () =>
    withFolder(async (place) => {
      const folder = `${place}/rows`, witness = `${place}/witness`, copy = `${place}/copy`;
      const first = await open(folder, witness);
      assert.equal(first.wentBack, false);
      for (let i = 1; i <= 3; i++) await first.commit(commitOf(i));
      await first.close();
      await Deno.mkdir(copy);
      for await (const { name } of Deno.readDir(folder)) {
        await Deno.copyFile(`${folder}/${name}`, `${copy}/${name}`);
      }
      const second = await open(folder, witness);
      assert.equal(second.wentBack, false);
      for (let i = 4; i <= 5; i++) await second.commit(commitOf(i));
      await second.close();
      const whole = await open(folder, witness);
      assert.equal(whole.wentBack, false);
      await whole.close();
      await Deno.remove(folder, { recursive: true });
      await Deno.rename(copy, folder);
      const older = await open(folder, witness);
      assert.equal(older.wentBack, true);
      await older.close();
    }));
}

Deno.test("a commit is counted when it is synced, and not before (CC1)", () =>
  withFolder(async (place) => {
    const { prototype } = Deno.FsFile, { syncDataSync, syncData, writeSync } = prototype, done: string[] = [];
    const storage = openSqlite(`${place}/rows`);
    prototype.syncDataSync = function () {
      syncDataSync.call(this);
      done.push("synced");
    };
    prototype.syncData = async function () {
      await syncData.call(this);
      done.push("synced");
    };
    prototype.writeSync = function (bytes) {
      done.push(`counted ${new DataView(bytes.buffer).getFloat64(0)}`);
      return writeSync.call(this, bytes);
    };
    try {
      for (let i = 1; i <= 3; i++) await storage.commit(commitOf(i));
    } finally {
      Object.assign(prototype, { syncDataSync, syncData, writeSync });
    }
    await storage.close();
    const [, first = ""] = done, before = Number(first.split(" ")[1]);
    assert.deepEqual(done, [0, 1, 2].flatMap((i) => ["synced", `counted ${before + i}`]));
  }));
