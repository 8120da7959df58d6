/**
 * The process that storage_kill_test.ts kills: commits numbered steps, and says each number once its commit
 * has resolved. Arguments: engine, folder, last number (without: for ever).
 */
import { numberedStep, numberIn } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";

const [engine = "", folder = "", last = "Infinity"] = Deno.args;
const storage = await openEngine(engine, folder);
let n = numberIn((await storage.load()).get("number"));
while (n < Number(last)) {
  n++;
  await storage.commit(numberedStep(n));
  Deno.stdout.writeSync(new TextEncoder().encode(`${n}\n`));
}
await storage.close();
