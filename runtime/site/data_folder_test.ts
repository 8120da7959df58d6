import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { StoreUnavailable } from "../../store/api.ts";
import type { Key } from "../../store/key.ts";
import { parseSiteConfig } from "./config.ts";
import { openData } from "./data_folder.ts";
import { isOpenToOthers } from "./file_mark.ts";

for (const engine of ["sqlite", "denokv"] as const) {
  Deno.test(`rows whose disk has no name any more are not opened (D2): ${engine}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
    await Deno.writeTextFile(join(folder, "secret"), "the secret of a test's cluster\n");
    const config = parseSiteConfig(
      {
        ...{ id: "cloud", parent: null, data: "data", secretFile: "secret", engine },
        listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
      },
      {},
      folder,
    );
    const open = () => openData(config, {});
    const file = join(folder, "data", "store", "disk");
    const first = await open();
    await first.storage.close();
    await Deno.remove(file); // as where the process ended before it was written
    const blank = await open();
    assert.notEqual(blank.disk, first.disk);
    const row = { key: "k" as Key, value: null, clock: 1, replica: 1, known: 0, expiresAtMs: 0, position: 1 };
    await blank.storage.commit({ rows: [row], drop: [], records: new Map([["state", new Uint8Array(1)]]) });
    await blank.storage.close();
    assert.equal(await open().then(async ({ disk, storage }) => (await storage.close(), disk)), blank.disk);

    const name = await Deno.readTextFile(file);
    const refused = (error: unknown) =>
      error instanceof StoreUnavailable && error.code === "disk_failed" &&
      /put back the file/.test(error.message);
    for (const bad of ["", "garbage\n", name.slice(0, 20)]) {
      await Deno.writeTextFile(file, bad);
      await assert.rejects(open(), refused);
    }
    await Deno.remove(file);
    await assert.rejects(open(), refused);
    await Deno.writeTextFile(file, name);
    const back = await open();
    assert.equal(back.disk, blank.disk);
    await back.storage.close();
    await Deno.remove(folder, { recursive: true });
  });
}

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

  Deno.test(`rows that are older than what was said of them are not opened (D3): ${engine}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-data-" });
    await Deno.writeTextFile(join(folder, "secret"), "the secret of a test's cluster\n");
    const config = parseSiteConfig(
      {
        ...{ id: "cloud", parent: null, data: "data", secretFile: "secret", engine },
        listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
      },
      {},
      folder,
    );
    const store = join(folder, "data", "store"), name = engine === "sqlite" ? "rows.db" : "root.kv";
    const put = async (position: number) => {
      const { storage } = await openData(config, {});
      const row = { key: `k${position}` as Key, value: null, clock: 1, replica: 1, known: 0, expiresAtMs: 0 };
      await storage.commit({
        rows: [{ ...row, position }],
        drop: [],
        records: new Map([["state", new Uint8Array(1)]]),
      });
      await storage.close();
    };
    await put(1);
    // All of it is in the one file then.
    new DatabaseSync(join(store, name)).close();
    const older = await Deno.readFile(join(store, name));
    await put(2);
    await Deno.writeFile(join(store, name), older);
    for (const end of ["-wal", "-shm"]) await Deno.remove(join(store, name + end)).catch(() => {});
    const refused = (error: unknown) =>
      error instanceof StoreUnavailable && error.code === "disk_failed" &&
      /the disk went back/.test(error.message);
    for (let tries = 0; tries < 2; tries++) await assert.rejects(openData(config, {}), refused);
    await Deno.remove(join(store, "commits"));
    const { storage } = await openData(config, {});
    assert.equal((await storage.get("k1" as Key))?.position, 1);
    await storage.close();
    await Deno.remove(folder, { recursive: true });
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
