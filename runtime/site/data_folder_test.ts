import assert from "node:assert/strict";
import { join } from "node:path";
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import { parseSiteConfig } from "./config.ts";
import { openSqlite } from "../storage/sqlite.ts";
import { openData, type OpenedData } from "./data_folder.ts";
import { isOpenToOthers } from "./file_mark.ts";
import { LostFolders, markOlder } from "./lost_folder.ts";

async function configOf(folder: string, engine: "sqlite" | "denokv", parent: string | null = null) {
  await Deno.writeTextFile(join(folder, "secret"), "the secret of a test's cluster\n");
  return parseSiteConfig(
    {
      ...{ id: parent === null ? "cloud" : "edge", data: "data", secretFile: "secret", engine },
      parent: parent === null ? null : { id: parent, url: "tcp://127.0.0.1:1" },
      listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
    },
    {},
    folder,
  );
}

/** Puts a row, as a site does. */
async function put({ storage }: OpenedData, position: number): Promise<void> {
  const value = new Uint8Array(200).fill(position);
  const row = { key: `k${position}` as Key, value, clock: 1, replica: 1, known: 0, expiresAtMs: 0, position };
  await storage.commit({ rows: [row], drop: [], records: new Map([["state", new Uint8Array(1)]]) });
}

async function copyFiles(from: string, to: string, which = /./): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for (const { name } of Deno.readDirSync(from)) {
    if (which.test(name)) await Deno.copyFile(join(from, name), join(to, name));
  }
}

async function emptied(folder: string, which: RegExp): Promise<void> {
  for (const { name } of [...Deno.readDirSync(folder)]) {
    if (which.test(name)) await Deno.remove(join(folder, name));
  }
}

for (const engine of ["sqlite", "denokv"] as const) {
  Deno.test(`rows whose disk has no name any more are not opened (D1, D2): ${engine}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
    const config = await configOf(folder, engine), renamed: string[] = [];
    const open = () => openData(config, { renamed: (file) => void renamed.push(file) });
    const file = join(folder, "data", "store", "disk");
    const first = await open();
    await put(first, 1);
    await first.storage.close();
    const name = await Deno.readTextFile(file);
    assert.equal(name.trim(), first.disk);

    // The rows know it, too: what became of the file is said, and nothing is lost by it.
    const flipped = (name[0] === "a" ? "b" : "a") + name.slice(1);
    for (const bad of ["", "garbage\n", name.slice(0, 20), flipped, null]) {
      if (bad === null) await Deno.remove(file);
      else await Deno.writeTextFile(file, bad);
      const again = await open();
      assert.equal(again.disk, first.disk);
      assert.equal(await Deno.readTextFile(file), name);
      assert.deepEqual(renamed.splice(0), [file]);
      assert.equal((await again.storage.get("k1" as Key))?.position, 1);
      await again.storage.close();
    }

    // As the version before left them: only the file has it.
    const former = await open();
    await former.storage.commit({
      rows: [],
      drop: [],
      records: new Map([["disk", null], ["state", new Uint8Array(1)]]),
    });
    await former.storage.close();
    const refused = (error: unknown) =>
      error instanceof StoreUnavailable && error.code === "disk_failed" &&
      /put back the file/.test(error.message) && error.message.includes(file);
    for (const bad of ["", "garbage\n", null]) {
      if (bad === null) await Deno.remove(file);
      else await Deno.writeTextFile(file, bad);
      await assert.rejects(open(), refused);
    }
    await Deno.writeTextFile(file, name);
    const back = await open();
    assert.equal(back.disk, first.disk);
    await back.storage.close();
    await Deno.remove(folder, { recursive: true });
  });

  Deno.test(`rows that are older than what was said of them are not opened (D3): ${engine} (lost_folder.ts LF2)`, async () => {
    for (const how of ["the database", "all of the folder"]) {
      const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
      const store = join(folder, "data", "store"), aside = join(folder, "older");
      const config = await configOf(folder, engine);
      const written = async (position: number) => {
        const opened = await openData(config, {});
        await put(opened, position);
        await opened.storage.close();
      };
      await written(1);
      await copyFiles(store, aside);
      await written(2);
      await emptied(store, how === "the database" ? /^(?:rows\.db|root\.kv)/ : /./);
      await copyFiles(aside, store, how === "the database" ? /^(?:rows\.db|root\.kv)/ : /./);
      const refused = (error: unknown) =>
        error instanceof StoreUnavailable && error.code === "disk_failed" &&
        /the disk went back: .* in .*store: restore the tree from a backup/.test(error.message);
      for (let tries = 0; tries < 2; tries++) await assert.rejects(openData(config, {}), refused, how);
      // What the message says can be done.
      await Deno.remove(join(store, "commits"));
      await Deno.remove(`${store}.commits`);
      const { storage } = await openData(config, {});
      assert.equal((await storage.get("k1" as Key))?.position, 1);
      await storage.close();
      await Deno.remove(folder, { recursive: true });
    }
  });
}

for (
  const [what, spoil] of [
    ["went back", async (store: string, older: string) => {
      await emptied(store, /^rows\.db/);
      await copyFiles(older, store, /^rows\.db/);
    }],
    [
      "is no database",
      (store: string) => Deno.writeTextFile(join(store, "rows.db"), "garbage ".repeat(2_000)),
    ],
    ["is gone", (store: string) => Deno.remove(join(store, "rows.db"))],
    ["is cut", (store: string) => Deno.truncate(join(store, "rows.db"), 9_000)],
  ] as const
) {
  Deno.test(`a database that ${what} is set aside below the root, and a blank one opened (D3, LF1, LF3)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
    const store = join(folder, "data", "store"), older = join(folder, "older");
    const config = await configOf(folder, "sqlite", "cloud"), lost: string[] = [];
    const open = () => openData(config, { lost: (folder, why) => void lost.push(`${folder}: ${why}`) });
    const first = await open();
    await put(first, 1);
    await first.storage.close();
    await copyFiles(store, older);
    const second = await open();
    for (let position = 2; position < 50; position++) await put(second, position);
    await second.storage.close();
    await spoil(store, older);
    const left = [...Deno.readDirSync(store)].map(({ name }) => name).sort();
    for (const times of [1, 1]) {
      const again = await open();
      assert.notEqual(again.disk, first.disk);
      assert.equal(await again.storage.get("k1" as Key), undefined);
      assert.equal(lost.length, times, "the blank one is opened as it is then");
      await put(again, 1);
      await again.storage.commit({ rows: [], drop: ["k1" as Key], records: new Map() });
      await again.storage.close();
    }
    assert.ok(lost[0]?.startsWith(store + ": "), lost[0]);
    const aside = [...Deno.readDirSync(`${store}.lost`)].map(({ name }) => name);
    for (const name of left) assert.ok(aside.includes(name) || name.endsWith("-shm"), name);
    const [found] = new LostFolders(join(folder, "data")).all();
    assert.equal(found?.folder, "store.lost");
    assert.ok(lost[0]?.endsWith(found?.why ?? "?"), found?.why);
    await Deno.remove(folder, { recursive: true });
  });
}

Deno.test("what neighbours have had more of is set aside as a whole at the next start (LF4)", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" }), data = join(folder, "data");
  const config = await configOf(folder, "sqlite", "cloud"), lost: string[] = [];
  const open = () => openData(config, { lost: (folder, why) => void lost.push(`${folder}: ${why}`) });
  const first = await open();
  await put(first, 1);
  await first.storage.close();
  await openSqlite(join(data, "homes")).close();
  await markOlder(join(data, "store"), "core has had more of it");
  const again = await open();
  assert.equal(await again.storage.get("k1" as Key), undefined);
  await again.storage.close();
  const why = "core has had more of it";
  assert.deepEqual(new LostFolders(data).all(), [{ folder: "homes.lost", why }, {
    folder: "store.lost",
    why,
  }]);
  assert.deepEqual(
    lost.map((each) => each.slice(data.length + 1)),
    ["homes", "store"].map((name) => `${name}: ${why}`),
  );
  await (await open()).storage.close();
  assert.equal(lost.length, 2, "once");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("what was set aside is not given up for what is set aside later: it may be the only log (LF1)", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" }), data = join(folder, "data");
  const config = await configOf(folder, "sqlite", "cloud"), lost: string[] = [];
  for (const time of [1, 2, 3]) {
    const { storage } = await openData(config, { lost: (_folder, _why, aside) => void lost.push(aside) });
    await storage.close();
    await openSqlite(join(data, "homes")).close();
    await Deno.writeTextFile(join(data, "homes", "mine"), String(time));
    await markOlder(join(data, "store"), `time ${time}`);
  }
  const { storage } = await openData(config, { lost: (_folder, _why, aside) => void lost.push(aside) });
  await storage.close();
  assert.deepEqual(
    lost.map((each) => each.slice(data.length + 1)),
    ["homes.lost", "store.lost", "homes.2.lost", "store.2.lost", "homes.3.lost", "store.3.lost"],
  );
  for (const [time, name] of [[1, "homes.lost"], [2, "homes.2.lost"], [3, "homes.3.lost"]] as const) {
    assert.equal(await Deno.readTextFile(join(data, name, "mine")), String(time));
  }
  assert.equal(new LostFolders(data).all().length, 6, "an operator is told of each");
  await Deno.remove(folder, { recursive: true });
});

for (const engine of ["sqlite", "denokv"] as const) {
  Deno.test(`what a site keeps is for its own user: ${engine}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
    try {
      await Deno.writeTextFile(join(folder, "secret"), "the secret of a test's cluster\n");
      const config = parseSiteConfig(
        {
          ...{ id: "cloud", parent: null, data: "data", secretFile: "secret", engine },
          listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
        },
        {},
        folder,
      );
      const { storage } = await openData(config, {});
      await storage.close();
      for (const path of ["data", "data/store"]) {
        assert.equal(((await Deno.stat(join(folder, path))).mode ?? 0) & 0o777, 0o700, path);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

Deno.test("a file that others than its owner may read is told from one that they may not", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
  const file = join(folder, "secret");
  try {
    await Deno.writeTextFile(file, "x");
    const rows: [mode: number, isOpen: boolean][] = [[0o600, false], [0o400, false], [0o640, true], [
      0o604,
      true,
    ]];
    for (const [mode, isOpen] of rows) {
      await Deno.chmod(file, mode);
      assert.equal(isOpenToOthers(file), isOpen, mode.toString(8));
    }
    assert.equal(isOpenToOthers(join(folder, "none")), false);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
