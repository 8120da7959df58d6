/**
 * S3 on real files: a process whose files may not grow beyond a limit (`ulimit -f`) meets a write that fails. Its
 * storage must say `disk_failed`, stay failed, and leave the last step whole.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { numberIn } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";

const CHILD = fileURLToPath(new URL("./storage_full_child.ts", import.meta.url));
/** Shells count in 512 or 1,024 bytes: 8 or 16 MiB, where a step writes 2 MB, or twice that with its redo log. */
const FILE_BLOCKS_MAX = 16_384;

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a disk that refuses a write fails the storage for good (S3, sqlite.ts Q4, denokv.ts K4)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-full-" });
    try {
      const { stdout } = await new Deno.Command("sh", {
        args: [
          "-c",
          `trap '' XFSZ; ulimit -f ${FILE_BLOCKS_MAX}; exec "$@"`,
          "sh",
          Deno.execPath(),
          ...["run", "-A", "--no-check", "--unstable-kv", CHILD, engine, `${folder}/rows`],
        ],
        stderr: "inherit",
      }).output();
      const said = JSON.parse(new TextDecoder().decode(stdout));
      assert.ok(said.told >= 1, "nothing was committed before the limit");
      assert.equal(said.code, "disk_failed");
      assert.equal(said.again, "disk_failed");
      const storage = await openEngine(engine, `${folder}/rows`);
      const found = numberIn((await storage.load()).get("number"));
      await storage.close();
      assert.ok(found === said.told || found === said.told + 1, `step ${said.told} told, ${found} found`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
