/** What the page on security promises is shown by tests that it names, and each of these exists. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");

async function* tests(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* tests(path);
    else if (/_(test|walk)\.ts$/.test(entry.name) && entry.name !== "security_test.ts") {
      yield await Deno.readTextFile(path);
    }
  }
}

Deno.test("each test that the page on security names exists", async () => {
  const page = await Deno.readTextFile(join(ROOT, "docs", "security.md"));
  const [, table = ""] = page.split("## Which test shows it");
  const rows = table.split("\n").filter((line) => line.startsWith("| ")).slice(2);
  assert.ok(rows.length > 20, `${rows.length} rows`);
  const all: string[] = [];
  for (const folder of ["tests", "runtime"]) {
    for await (const text of tests(join(ROOT, folder))) all.push(text);
  }
  const code = all.join("\n");
  for (const row of rows) {
    const [, said = "", shown = ""] = row.split("|").map((cell) => cell.trim());
    const named = [...shown.matchAll(/"([^"]+)"/g)].map(([, name]) => name ?? "");
    assert.ok(named.length > 0, `no test shows: ${said}`);
    for (const name of named) {
      // A name that ends in a template is found by its constant part.
      const isThere = [`"${name}`, `\`${name}`].some((text) => code.includes(text));
      assert.ok(isThere, `no test is called ${JSON.stringify(name)}`);
    }
  }
});
