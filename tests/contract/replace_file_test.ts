/** A file that is replaced, on disks that lose and tear what was not synced (torn_disk.ts). */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { folderOf, replaceFile } from "../../functions/client/replace_file.ts";
import { Draws } from "../sim/random.ts";
import { numbered, numberOf } from "./replace_file_numbered.ts";
import { type Call, cutAt, FOLDER, recorded, TEARS } from "./torn_disk.ts";

const CHILD = fileURLToPath(new URL("./replace_file_child.ts", import.meta.url));
const TIMES = 12;

/** What is wrong with what a cut after each call leaves, in each way that it may. */
function wrong(calls: readonly Call[]): string[] {
  const draws = new Draws("replaced");
  const found: string[] = [];
  let told = 0;
  calls.forEach((call, index) => {
    if (call.kind === "said") told = Number(call.text);
    for (const tear of TEARS) {
      const content = cutAt(calls, index, tear, draws).get("kept");
      const number = content === undefined ? 0 : numberOf(content);
      if (number === null) found.push(`${tear} after call ${index}: torn`);
      else if (number < told || number > told + 1) {
        found.push(`${tear} after call ${index}: ${number}, told ${told}`);
      }
    }
  });
  return found;
}

Deno.test("a power cut leaves a file that is replaced whole, and no older than the last one told (RF1, RF2)", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-replaced-" });
  try {
    await Deno.mkdir(`${folder}/files`);
    const command = [Deno.execPath(), "run", "-A", "--no-check", CHILD, `${folder}/files/kept`, `${TIMES}`];
    const calls = await recorded(command, `${folder}/files`, `${folder}/trace`);
    if (calls === null) return void await t.step({ name: "no strace here", ignore: true, fn: () => {} });
    assert.equal(calls.findLast((call) => call.kind === "said")?.text, `${TIMES}`);
    assert.deepEqual(wrong(calls), []);
    // Without either sync the test must notice.
    const isSync = (call: Call, ofNames: boolean) =>
      call.kind === "sync" && (call.file === FOLDER) === ofNames;
    const torn = wrong(calls.filter((call) => !isSync(call, false)));
    assert.ok(torn.some((one) => one.endsWith("torn")), "contents that are never synced pass");
    const old = wrong(calls.filter((call) => !isSync(call, true)));
    assert.ok(old.some((one) => one.includes("told")), "names that are never synced pass");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("replaceFile leaves the old content where it fails, and closes what it opened (RF3)", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-replaced-" });
  try {
    const path = `${folder}/kept`;
    (await replaceFile(Deno, path, numbered(1), { mode: 0o600 })).close();
    const full: Pick<typeof Deno, "open" | "rename" | "remove"> = {
      open: async (...of) => {
        const file = await Deno.open(...of);
        file.sync = () => Promise.reject(new Error("no space left on device"));
        return file;
      },
      rename: Deno.rename,
      remove: Deno.remove,
    };
    await assert.rejects(replaceFile(full, path, numbered(2)), /no space left/);
    assert.equal(numberOf(await Deno.readFile(path)), 1);
    (await replaceFile(Deno, path, numbered(3), { mode: 0o600 })).close();
    assert.equal(numberOf(await Deno.readFile(path)), 3);
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["kept"]);
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the folder of a path is where its name is", () => {
  const folders = [["a/b", "a"], ["/a/b/c", "/a/b"], ["/a", "/"], ["a", "."]] as const;
  for (const [path, folder] of folders) assert.equal(folderOf(path), folder);
});
