/** A site's own copies, made of real storages while these are written, and put back. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { packKey } from "../../../store/model/key.ts";
import type { Storage } from "../../../store/model/ports.ts";
import { ArchiveReader, type BackupManifest } from "../../../runtime/backup/archive.ts";
import { RestoreError, restoreSite, verifyBackup } from "../../../runtime/backup/restore.ts";
import { keepRestored, readRestored, RESTORING } from "../../../runtime/backup/restored.ts";
import { SiteBackups } from "../../../runtime/backup/site_backups.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { Hold } from "../../../runtime/link/mod.ts";
import { openDenoKv } from "../../../runtime/storage/denokv.ts";
import { openSqlite } from "../../../runtime/storage/sqlite.ts";

const SECRET = new TextEncoder().encode("the secret of before, of the cluster");
const NEW_SECRET = new TextEncoder().encode("a secret that is new, of the cluster");
const CUT = "00112233445566778899aabbccddeeff";
const NOW = "2026-11-23T10:00:00.000Z";
const KEY = packKey(["counter"]);

/** The data of a root, open, and what backs it up. */
class Data implements AsyncDisposable {
  readonly hold = new Hold();
  readonly backups: SiteBackups;
  #count = 0;
  #stopped = false;
  #writing: Promise<void> | null = null;

  private constructor(readonly folder: string, readonly store: Storage, readonly homes: Storage) {
    this.backups = new SiteBackups({
      data: join(folder, "data"),
      engine: "denokv",
      secrets: [SECRET],
      hold: this.hold,
      facts: () => ({
        ...{ site: "cloud", parent: null, tier: "root", release: "1.0.0", at: NOW },
        ...{ incarnation: 1, position: this.#count, pending: 0 },
      }),
      note: () => {},
    });
  }

  static async open(): Promise<Data> {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-backups-" });
    const data = join(folder, "data");
    const store = await openDenoKv({ folder: join(data, "store"), witness: join(data, "store.commits") });
    await Deno.writeTextFile(join(data, "store", "disk"), "a name\n");
    return new Data(folder, store, openSqlite(join(data, "homes"), {}, join(data, "homes.commits")));
  }

  /** Writes a number to the one, then to the other, without end: at no moment does the second have more. */
  write(): void {
    this.#writing = (async () => {
      while (!this.#stopped) {
        const count = ++this.#count;
        await this.homes.commit(step(count));
        await this.store.commit(step(count));
      }
    })();
  }

  get count(): number {
    return this.#count;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#writing;
  }

  /** The file of a backup. */
  async file(cut = CUT): Promise<string> {
    while (this.backups.state(cut).state === "copying") {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(this.backups.state(cut).state, "ready", this.backups.state(cut).why);
    const { bytes, body } = this.backups.content(cut);
    const file = join(this.folder, "site.sojourn");
    await Deno.writeFile(file, body);
    assert.equal((await Deno.stat(file)).size, bytes);
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.backups.close();
    await this.store.close();
    await this.homes.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Large enough that a copy takes some time. */
const FILLING = new Uint8Array(100_000);

function step(count: number) {
  const row = (key: typeof KEY, position: number, value: Uint8Array) => ({
    ...{ key, position, clock: count, replica: 1, known: 0, expiresAtMs: 0, value },
  });
  const rows = [
    row(KEY, count * 2, new TextEncoder().encode(`${count}`)),
    row(packKey(["filling", count % 100]), count * 2 + 1, FILLING),
  ];
  return { rows, drop: [], records: new Map<string, Uint8Array>() };
}

async function counterOf(storage: Storage): Promise<number> {
  return Number(new TextDecoder().decode((await storage.get(KEY))?.value ?? undefined));
}

const site = (data: string) => ({ id: "cloud", isRoot: true, engine: "denokv", data });
const order = (file: string, data: string) => ({
  ...{ file, site: site(data), secrets: [NEW_SECRET], formerSecrets: [SECRET], replace: false, now: NOW },
});
const refused = (code: string) => (error: unknown) =>
  (error instanceof RestoreError || error instanceof Problem) && error.code === code;

Deno.test("copies of several databases are of one moment, while all are written (SN1)", async () => {
  await using data = await Data.open();
  data.write();
  for (let i = 0; i < 5; i++) {
    const cut = `${i}`.repeat(32);
    await data.backups.prepare(cut);
    const atLeast = data.count - 1;
    data.backups.take(cut, false);
    const restored = join(data.folder, `restored-${i}`);
    await restoreSite(order(await data.file(cut), restored));
    const [store, homes] = [
      await openDenoKv({ folder: join(restored, "store") }),
      openSqlite(join(restored, "homes")),
    ];
    const [inStore, inHomes] = [await counterOf(store), await counterOf(homes)];
    assert.ok(inHomes === inStore || inHomes === inStore + 1, `homes ${inHomes}, store ${inStore}`);
    assert.ok(inStore >= atLeast, `${inStore} is less than ${atLeast}, which was written before`);
    assert.deepEqual(
      [store.wentBack, homes.wentBack],
      [false, false],
      "no count of commits of before is there (RT4)",
    );
    await store.close();
    await homes.close();
  }
});

Deno.test("a moment that comes after its hold is refused, and one within it ends the hold (SB3)", async () => {
  await using data = await Data.open();
  await data.backups.prepare(CUT);
  assert.throws(() => data.backups.take(CUT, true), refused("interrupted"));
  data.backups.hold(CUT);
  assert.ok(data.hold.lasts(CUT));
  data.backups.take(CUT, true);
  assert.equal(data.hold.passed(), null);
  assert.throws(() => data.backups.take(CUT, true), refused("interrupted"), "its moment has passed");
  await data.file();
});

Deno.test("a site has one backup at a time, which goes when it is dropped, or the next is made (SB1)", async () => {
  await using data = await Data.open();
  const spool = join(data.folder, "data", "backup");
  const names = () => [...Deno.readDirSync(spool)].map(({ name }) => name);
  await data.backups.prepare(CUT);
  data.backups.take(CUT, false);
  await assert.rejects(data.backups.prepare("f".repeat(32)), refused("interrupted"));
  await data.file();
  await data.backups.prepare("f".repeat(32));
  assert.deepEqual(names(), ["f".repeat(32)]);
  assert.throws(() => data.backups.state(CUT), refused("not_found"));
  await data.backups.drop("f".repeat(32));
  assert.deepEqual(names(), []);
  await Deno.mkdir(join(spool, "left"));
  await SiteBackups.sweep(join(data.folder, "data"));
  await assert.rejects(Deno.stat(spool), Deno.errors.NotFound);
});

Deno.test("a backup that is given up lets go of the databases, before its moment and after it (SN4)", async () => {
  await using data = await Data.open();
  for (let count = 1; count <= 200; count++) await data.homes.commit(step(count));
  using db = new DatabaseSync(join(data.folder, "data", "homes", "rows.db"));
  const isHeld = () => db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] !== 0;
  for (const isTaken of [false, true]) {
    await data.backups.prepare(CUT);
    if (isTaken) data.backups.take(CUT, false);
    await data.backups.drop(CUT);
    assert.equal(isHeld(), false, "the log can be begun anew");
    assert.deepEqual(
      [...Deno.readDirSync(join(data.folder, "data", "backup"))],
      [],
      "nobody writes on (SN4)",
    );
  }
});

Deno.test("a site without a disk of its own has nothing to back up", async () => {
  const hold = new Hold();
  const backups = new SiteBackups({
    ...{ data: "/nowhere", engine: "memory", secrets: [SECRET], hold },
    facts: () => assert.fail("nobody is asked"),
    note: () => {},
  });
  await assert.rejects(backups.prepare(CUT), refused("not_available"));
});

Deno.test("a backup for which the disk has no room is not begun (SB2)", async () => {
  await using data = await Data.open();
  await data.homes.commit(step(1));
  const bytes = ["homes/rows.db", "homes/rows.db-wal", "homes/SOJOURN", "store/root.kv", "store/root.kv-wal"]
    .concat("store/SOJOURN", "store/disk")
    .reduce((sum, name) => sum + Deno.statSync(join(data.folder, "data", name)).size, 0);
  let freeBytes = bytes + 64 * 1024 * 1024 - 1;
  const backups = new SiteBackups({
    ...{ data: join(data.folder, "data"), engine: "denokv", secrets: [SECRET], hold: data.hold },
    facts: () => assert.fail("its moment does not come"),
    note: () => {},
    freeBytes: () => freeBytes,
  });
  await assert.rejects(backups.prepare(CUT), refused("disk_failed"));
  await assert.rejects(Deno.stat(join(data.folder, "data", "backup", CUT)), Deno.errors.NotFound);
  freeBytes++;
  assert.equal((await backups.prepare(CUT)).state, "prepared");
  await backups.close();
});

Deno.test("a restore is refused, and changes nothing, where it is not right (RT1, RT2, RS1)", async () => {
  await using data = await Data.open();
  await data.backups.prepare(CUT);
  data.backups.take(CUT, false);
  const file = await data.file(), to = join(data.folder, "to");
  await Deno.mkdir(join(to, "store"), { recursive: true });
  await Deno.writeTextFile(join(to, "store", "rows"), "precious");
  await Deno.writeTextFile(join(to, "store.commits"), "so many");
  const before = await treeOf(to);
  const flipped = join(data.folder, "flipped"), bytes = await Deno.readFile(file);
  bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
  await Deno.writeFile(flipped, bytes);
  const base = order(file, to);
  const cases = [
    [{ ...base, file: flipped }, "backup_damaged"],
    [{ ...base, formerSecrets: [NEW_SECRET] }, "backup_forged"],
    [{ ...base, secrets: [NEW_SECRET, SECRET] }, "secret_of_before"],
    [{ ...base, site: { ...base.site, id: "edge-1" } }, "site_differs"],
    [{ ...base, site: { ...base.site, isRoot: false } }, "site_differs"],
    [{ ...base, site: { ...base.site, engine: "sqlite" } }, "site_differs"],
    [{ ...base, file: join(data.folder, "absent") }, "file_not_read"],
    [{ ...base, site: site(join(data.folder, "data")), replace: true }, "site_running"],
    [base, "folder_not_empty"],
  ] as const;
  for (const [order, code] of cases) {
    await assert.rejects(restoreSite(order), (error) => {
      assert.equal((error as { code?: string }).code, code);
      return true;
    });
    assert.deepEqual(await treeOf(to), before, code);
  }
  assert.equal((await verifyBackup(file, null)).isSigned, null);
  const restored = await restoreSite({ ...base, replace: true });
  assert.equal(await Deno.readTextFile(join(restored.aside ?? "", "store", "rows")), "precious");
  await assert.rejects(Deno.stat(join(to, "store.commits")), Deno.errors.NotFound, "RT4");
  assert.deepEqual((await readRestored(to))?.cut, CUT);
  // What was restored from a restored site is kept from all secrets of before.
  const manifest = await manifestOf(file);
  assert.deepEqual((await readRestored(to))?.formerSecrets, manifest.secrets);
});

Deno.test("data whose restoring was cut off is not opened, until it was restored again (RT3)", async () => {
  await using data = await Data.open();
  await data.backups.prepare(CUT);
  data.backups.take(CUT, false);
  const file = await data.file(), to = join(data.folder, "to");
  await restoreSite(order(file, to));
  await Deno.writeTextFile(join(to, RESTORING), "begun");
  await Deno.remove(join(to, "homes"), { recursive: true });
  await assert.rejects(readRestored(to), /was cut off: run `sojourn restore` again/);
  await restoreSite({ ...order(file, to), replace: true, now: "2026-11-23T11:00:00.000Z" });
  assert.equal((await readRestored(to))?.cut, CUT);
  assert.ok((await Deno.stat(join(to, "homes", "rows.db"))).isFile);
  assert.deepEqual(
    (await Array.fromAsync(Deno.readDir(to), ({ name }) => name)).sort(),
    ["before-20261123T110000000Z", "homes", "restored.json", "store"],
  );
});

async function manifestOf(file: string): Promise<BackupManifest> {
  let found: BackupManifest | undefined;
  new ArchiveReader({ manifest: (manifest) => void (found = manifest) }).push(await Deno.readFile(file));
  assert.ok(found !== undefined);
  return found;
}

Deno.test("data that was restored and went on is not restored again under the same secret (RS1)", async () => {
  await using data = await Data.open();
  await data.backups.prepare(CUT);
  data.backups.take(CUT, false);
  const file = await data.file(), to = join(data.folder, "to");
  await restoreSite(order(file, to));
  // Nothing has gone on yet: the same may be done again.
  await restoreSite({ ...order(file, to), replace: true, now: "2026-11-23T11:00:00.000Z" });
  const restored = await readRestored(to);
  assert.ok(restored !== null);
  await keepRestored(to, { ...restored, joined: true });
  const again = { ...order(file, to), replace: true, now: "2026-11-23T12:00:00.000Z" };
  await assert.rejects(restoreSite(again), refused("secret_of_before"));
  const another = new TextEncoder().encode("one more secret, of the cluster");
  await restoreSite({ ...again, secrets: [another] });
});

/** All files below a folder, with their contents. */
async function treeOf(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) Object.assign(found, await treeOf(path));
    else found[path] = (await Deno.readFile(path)).toHex();
  }
  return found;
}
