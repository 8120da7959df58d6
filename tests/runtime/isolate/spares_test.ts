import assert from "node:assert/strict";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

const APP = `export default { fetch: () => new Response("x") };`;

/** Longer than what was opened is given to answer, and than a process takes to be there on a busy machine. */
const REPLACED_MS_MAX = 10_000;

async function isReplaced(pool: IsolatePool): Promise<boolean> {
  const untilMs = performance.now() + REPLACED_MS_MAX;
  while (pool.status().spares !== 1 && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return pool.status().spares === 1;
}

Deno.test("a taken spare is replaced, whether there was one or not, and of whatever size", async () => {
  const pool = new IsolatePool({ spares: 1 });
  try {
    assert.equal(pool.status().spares, 0);
    for (const [name, heapMib] of [["first", 128], ["second", 128], ["third", 64], ["fourth", 64]] as const) {
      const answer = await pool.call(appOf(APP, { name, limits: { heapMib } }), callOf("/"));
      assert.equal(answer.kind, "response", JSON.stringify(answer));
      // What is started for later is behind what came with the isolate that is needed now.
      assert.equal(pool.status().spares, 0);
      assert.ok(await isReplaced(pool));
    }
    await pool.start();
  } finally {
    await pool.close();
  }
});

Deno.test("pool that cannot start a process says so, and stops", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  await Deno.writeTextFile(`${folder}/file`, "");
  const pool = new IsolatePool({ spares: 1, cacheFolder: `${folder}/file/none` });
  try {
    const answer = await pool.call(appOf(APP), callOf("/"));
    assert.equal(answer.kind === "error" && answer.code, "load_failed");
    await assert.rejects(pool.start());
  } finally {
    await pool.close();
    await Deno.remove(folder, { recursive: true });
  }
});

/** Processes that this one has started, and that have not ended. */
async function children(): Promise<Set<string>> {
  const { stdout } = await new Deno.Command("ps", { args: ["--ppid", `${Deno.pid}`, "-o", "pid=,comm="] })
    .output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n").filter((line) => line !== "");
  return new Set(
    lines.filter((line) => !/\sps\b/.test(line)).map((line) => line.trim().split(/\s+/)[0] ?? ""),
  );
}

Deno.test("a pool that is closed leaves no process: spare, serving, evaluating or about to begin (pool.ts O2)", async () => {
  const before = await children();
  const bundle = new TextEncoder().encode("for (;;);");
  for (const waits of [0, 1]) {
    const pool = new IsolatePool({ spares: 1 });
    if (waits > 0) await pool.call(appOf(APP, { name: "serves" }), callOf("/"));
    pool.warm(appOf(APP, { name: "begins" }));
    const evaluated = pool.evaluate(bundle);
    const late = pool.call(appOf(APP, { name: "called" }), callOf("/"));
    await pool.close();
    const left = (await children()).difference(before);
    assert.deepEqual([...left], []);
    assert.equal((await evaluated).kind, "error");
    assert.equal((await late).kind, "error");
  }
});
