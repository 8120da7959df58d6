import { strict as assert } from "node:assert";
import { makeIsolatesFolder } from "./isolates_folder.ts";

Deno.test("a folder whose process is gone is removed by the next, one whose process lives is not (L1)", async () => {
  const child = new Deno.Command(Deno.execPath(), { args: ["--version"], stdout: "null" }).spawn();
  await child.status;
  const left = await Deno.makeTempDir({ prefix: `sojourn-isolates-${child.pid}-` });
  await Deno.writeTextFile(`${left}/1-0.mark`, "");
  const first = await makeIsolatesFolder();
  const second = await makeIsolatesFolder();
  try {
    await assert.rejects(Deno.stat(left), Deno.errors.NotFound);
    assert.ok((await Deno.stat(first)).isDirectory);
  } finally {
    for (const folder of [first, second]) await Deno.remove(folder, { recursive: true });
  }
});
