/**
 * That a commit is synced before it resolves, by the system's own record (strace): between two numbers that a
 * process says, its disk was synced at least once; for SQLite, exactly once.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("./storage_kill_child.ts", import.meta.url));
const STEPS = 25;

/** Whether this machine lets us trace. */
async function traceable(): Promise<boolean> {
  try {
    const { success } = await new Deno.Command("strace", { args: ["-f", "true"], stderr: "null" }).output();
    return success;
  } catch {
    return false;
  }
}

/** How many syncs had returned when each number was said. */
async function syncsAt(engine: string, folder: string): Promise<number[]> {
  const trace = `${folder}/trace`;
  const { success } = await new Deno.Command("strace", {
    args: [
      ...["-f", "-qq", "-o", trace, "-e", "trace=fdatasync,fsync,write", "-s", "20"],
      Deno.execPath(),
      ...["run", "-A", "--no-check", "--unstable-kv", CHILD, engine, `${folder}/rows`, `${STEPS}`],
    ],
    stdout: "null",
    stderr: "null",
  }).output();
  assert.ok(success, "the traced process failed");
  const out: number[] = [];
  let syncs = 0;
  for (const line of (await Deno.readTextFile(trace)).split("\n")) {
    if (/(fdatasync|fsync).*= 0$/.test(line)) syncs++;
    if (/write\(1, "\d+\\n"/.test(line)) out.push(syncs);
  }
  return out;
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a commit resolves after a sync of its own (sqlite.ts Q1, denokv.ts K3)`, async (t) => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-sync-" });
    try {
      if (!await traceable()) {
        return void await t.step({ name: "no strace here", ignore: true, fn: () => {} });
      }
      const at = await syncsAt(engine, folder);
      assert.equal(at.length, STEPS);
      const between = at.map((count, i) => count - (i === 0 ? count - 1 : at[i - 1] ?? 0));
      assert.ok(between.every((count) => count >= 1), `syncs between commits: ${between}`);
      // Checkpoints sync too, now and then.
      if (engine === "sqlite") {
        assert.ok(between.filter((count) => count === 1).length > STEPS * 0.7, `${between}`);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
