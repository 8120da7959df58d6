/** Every row of the page on faults names a test, and every test that it names exists. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");

/** Files that define tests and broken variants. */
async function* sources(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* sources(path);
    else if (/\.tsx?$/.test(entry.name) && !path.endsWith("faults_test.ts")) {
      yield await Deno.readTextFile(path);
    }
  }
}

Deno.test("the page on faults names a test for each, and each of these exists", async () => {
  const page = await Deno.readTextFile(join(ROOT, "docs", "faults.md"));
  const rows = page.split("\n").filter((line) => line.startsWith("| ")).slice(2);
  assert.ok(rows.length > 20, `${rows.length} faults`);
  const all: string[] = [];
  for (const folder of ["tests", "runtime"]) {
    for await (const text of sources(join(ROOT, folder))) all.push(text);
  }
  const code = all.join("\n");
  for (const row of rows) {
    const cells = row.split("|").map((cell) => cell.trim());
    assert.equal(cells.length, 6, row);
    const named = [...(cells[4] ?? "").matchAll(/"([^"]+)"/g)].map(([, name]) => name ?? "");
    assert.ok(named.length > 0, `no test shows: ${cells[1]}`);
    for (const name of named) {
      // A name that begins or ends in a template is found by its constant part.
      const quoted = [`"${name}`, `\`${name}`, `: ${name}`].some((text) => code.includes(text));
      assert.ok(quoted, `no test is called ${JSON.stringify(name)}`);
    }
  }
});
