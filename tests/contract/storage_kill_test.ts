/**
 * S2 on real files: a process that commits is killed (SIGKILL) at any moment, again and again on one folder, and
 * what it leaves must be some step, whole, not older than the last one that it said was committed. And for the
 * engine whose large steps take several writes: a crash at each single write.
 *
 * This shows that no order of writes leaves half a step. It does not show that data was synced: the system's
 * cache survives a killed process.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { claimFolder } from "../../runtime/storage/folder.ts";
import { DenoKvStorage, openDenoKv } from "../../runtime/storage/denokv.ts";
import { numberedStep, wholeStep } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";

const ROUNDS = Number(Deno.env.get("SOJOURN_KILL_ROUNDS") ?? 4);
const CHILD = fileURLToPath(new URL("./storage_kill_child.ts", import.meta.url));

/** Runs a child until it has said `said` numbers, then `moreMs` longer, and kills it; the last number it said. */
async function killed(engine: string, folder: string, said: number, moreMs: number): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--unstable-kv", CHILD, engine, folder],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let text = "";
  let dead = false;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (!dead && text.split("\n").length > said) {
      for (const until = performance.now() + moreMs; performance.now() < until;); // shifts the kill within a step
      child.kill("SIGKILL");
      dead = true;
    }
  }
  await child.status;
  return Number(text.slice(0, text.lastIndexOf("\n")).split("\n").at(-1));
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a killed process leaves a whole step, no older than the last it told (S2)`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-kill-" });
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const told = await killed(engine, `${folder}/rows`, 6 + round, round * 7);
        const storage = await openEngine(engine, `${folder}/rows`);
        const found = await wholeStep(storage);
        await storage.close();
        assert.ok(found >= told, `step ${told} was committed, and ${found} is on disk`);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

/** A database whose atomic operations fail from the n-th on, as if the process had died before it. */
function dyingAt(kv: Deno.Kv, n: number, count: { made: number }): Deno.Kv {
  return new Proxy(kv, {
    get: (target, name) => {
      if (name === "atomic") {
        const atomic = target.atomic();
        const commit = atomic.commit.bind(atomic);
        atomic.commit = () => count.made++ >= n ? Promise.reject(new Error("the process died")) : commit();
        return () => atomic;
      }
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

Deno.test("storage: denokv: a crash at each write of a large step leaves all of it or nothing (S2)", async () => {
  const seen = new Set<number>();
  for (let n = 1;; n++) {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-kill-" });
    const place = `${folder}/rows`;
    try {
      const claim = claimFolder(place, "denokv 1");
      const count = { made: 0 };
      const dying = new DenoKvStorage(dyingAt(await Deno.openKv(`${place}/root.kv`), n, count), claim);
      await dying.commit(numberedStep(1));
      const died = await dying.commit(numberedStep(7)).then(() => false, () => true);
      if (died) await assert.rejects(dying.commit(numberedStep(8)), { code: "disk_failed" }, "S3");
      await dying.close();
      const storage = await openDenoKv({ folder: place });
      const found = await wholeStep(storage);
      seen.add(found);
      await storage.commit(numberedStep(9));
      assert.equal(await wholeStep(storage), 9);
      await storage.close();
      if (!died) break;
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }
  assert.deepEqual([...seen], [1, 7], "early crashes leave the old step, late ones the new step");
});
