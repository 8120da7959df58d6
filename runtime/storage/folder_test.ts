import assert from "node:assert/strict";
import { claimFolder } from "./folder.ts";

async function inFolder(body: (path: string) => void | Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir({ prefix: "sojourn-folder-" });
  try {
    await body(path);
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

Deno.test("claimFolder creates what is missing, and takes back what is its own", () =>
  inFolder((path) => {
    claimFolder(`${path}/a/b`, "test 1").release();
    const claim = claimFolder(`${path}/a/b`, "test 1");
    claim.release();
    claim.release();
    assert.deepEqual([...Deno.readDirSync(`${path}/a/b`)].map((entry) => entry.name).sort(), [
      "SOJOURN",
      "lock",
    ]);
  }));

Deno.test("claimFolder refuses a folder that is held, and names the process (F2)", () =>
  inFolder((path) => {
    const claim = claimFolder(path, "test 1");
    const wanted = { code: "disk_failed", message: new RegExp(`process ${Deno.pid} holds it`) };
    assert.throws(() => claimFolder(path, "test 1"), wanted);
    claim.release();
    claimFolder(path, "test 1").release();
  }));

Deno.test("claimFolder refuses other files and other engines, and writes nothing there (F1)", () =>
  inFolder((path) => {
    Deno.writeTextFileSync(`${path}/thesis.txt`, "years of work");
    assert.throws(() => claimFolder(path, "test 1"), /holds other files \(thesis\.txt\); an empty folder/);
    assert.deepEqual([...Deno.readDirSync(path)].map((entry) => entry.name), ["thesis.txt"]);
    claimFolder(`${path}/rows`, "test 1").release();
    assert.throws(() => claimFolder(`${path}/rows`, "test 2"), /was written by "sojourn storage: test 1"/);
    assert.throws(() => claimFolder(`${path}/thesis.txt`, "test 1"), { code: "disk_failed" });
  }));

Deno.test("claimFolder writes a mark again that a power cut has torn, where nothing else is in the folder (F3)", () =>
  inFolder((path) => {
    Deno.writeTextFileSync(`${path}/SOJOURN`, "sojourn sto");
    claimFolder(path, "test 1").release();
    assert.equal(Deno.readTextFileSync(`${path}/SOJOURN`), "sojourn storage: test 1\n");
    Deno.writeTextFileSync(`${path}/SOJOURN`, "");
    Deno.writeTextFileSync(`${path}/rows.db`, "rows");
    assert.throws(() => claimFolder(path, "test 1"), { code: "disk_failed" });
  }));
