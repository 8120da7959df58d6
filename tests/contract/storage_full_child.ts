/**
 * Commits numbered steps, each with a row more, until the disk refuses, tries once more, and says how it went, as one JSON line:
 * `{told, code, again}`. storage_full_test.ts limits the size of its files. Arguments: engine, folder.
 */
import { packKey } from "../../store/model/key.ts";
import { row } from "./storage_contract.ts";
import { numberedStep, numberIn } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";

const codeOf = (error: unknown) => error instanceof Error && "code" in error ? error.code : String(error);

const [engine = "", folder = ""] = Deno.args;
const storage = await openEngine(engine, folder);
let told = numberIn((await storage.load()).get("number"));
let code: unknown = null;
while (code === null) {
  const numbered = numberedStep(told + 1, true);
  const filler = row(packKey(["filler", told]), 1_000_000 + told, new Uint8Array(500_000));
  await storage.commit({ ...numbered, rows: [...numbered.rows, filler] }).then(
    () => told++,
    (error) => code = codeOf(error),
  );
}
const again = await storage.commit(numberedStep(told + 2, false)).then(() => null, codeOf);
console.log(JSON.stringify({ told, code, again }));
await storage.close().catch(() => {});
