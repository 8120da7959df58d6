/**
 * New isolates, one after another: an app version that no isolate has, called while a spare process waits, as a
 * site does it. Answers the milliseconds from each call to its response.
 */
import { join } from "node:path";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { DEFAULT_ISOLATE_LIMITS, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { callOf } from "../../runtime/isolate/apps.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

const { isolates } = freshInput() as { isolates: number };
const result = await bundleApp(join(import.meta.dirname ?? ".", "..", "apps", "load", "app.ts"));
if (result.kind === "failed") throw new Error(result.message);
const { code } = result;
const pool = new IsolatePool();
const tookMs: number[] = [];
try {
  for (let n = 0; n < isolates; n++) {
    await pool.start(); // a spare waits
    const version = String(n).padStart(64, "0");
    const begunMs = performance.now();
    const answer = await pool.call({
      app: "load",
      version,
      bundle: () => Promise.resolve(code),
      limits: DEFAULT_ISOLATE_LIMITS,
      vars: {},
      fetchHosts: [],
    }, callOf("/hello"));
    if (answer.kind !== "response" || answer.status !== 200) throw new Error(`no answer: ${answer.kind}`);
    tookMs.push(performance.now() - begunMs);
    await pool.release({ app: "load", version });
  }
} finally {
  await pool.close();
}
freshAnswer(tookMs);
