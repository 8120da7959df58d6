/**
 * The process that storage_kill_test.ts kills: commits numbered steps for ever, and says each number once its
 * commit has resolved. Arguments: engine, folder.
 */
import { numberedStep, numberIn } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";

const [engine = "", folder = ""] = Deno.args;
const storage = await openEngine(engine, folder);
let n = numberIn((await storage.load()).get("number"));
for (;;) {
  n++;
  await storage.commit(numberedStep(n));
  Deno.stdout.writeSync(new TextEncoder().encode(`${n}\n`));
}
