import assert from "node:assert/strict";
import { join } from "node:path";
import { cpuUsage } from "node:process";
import { bundleApp, checkImports } from "../../../runtime/bundle/mod.ts";
import { mapLocator } from "../../../runtime/bundle/source_places.ts";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "../isolate/apps.ts";

/** Bundles files written to a folder of their own, outside of the checkout. */
async function bundleOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<
  { kind: string; message: string; code: string; warnings: readonly string[] }
> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    for (const [name, content] of Object.entries(files)) {
      if (typeof content === "string") await Deno.writeTextFile(join(folder, name), content);
      else await Deno.writeFile(join(folder, name), content);
    }
    const result = await bundleApp(join(folder, "app.ts"));
    return result.kind === "bundled"
      ? {
        kind: result.kind,
        message: "",
        code: new TextDecoder().decode(result.code),
        warnings: result.warnings,
      }
      : { kind: result.kind, message: result.message, code: "", warnings: [] };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** (a, b) => a + b */
const ADD_WASM = Uint8Array.from(
  atob("AGFzbQEAAAABBwFgAn9/AX8DAgEABwcBA2FkZAAACgkBBwAgACABags="),
  (c) => c.charCodeAt(0),
);

Deno.test("bundle of an app outside of the checkout has its text, JSON, WASM and packages in it, and runs", async () => {
  const { kind, code, message } = await bundleOf({
    "app.ts": `
      import text from "./note.txt" with { type: "text" };
      import data from "./data.json" with { type: "json" };
      import { add } from "./add.wasm";
      import { other } from "@own";
      import { Hono } from "hono";
      import { z } from "zod";
      import { defineApp } from "sojourn";
      import { Buffer } from "node:buffer";
      import inspect from "npm:object-inspect@1.13.4";
      const app = new Hono();
      app.get("/", (c) => c.json([text.trim(), data.a, add(2, 3), other, z.number().parse(4), Buffer.from("x").length, inspect([1])]));
      export default defineApp({ fetch: app.fetch });`,
    "other.ts": `export const other: string = "other";`,
    "note.txt": "a note\n",
    "data.json": `{"a": 1}`,
    "add.wasm": ADD_WASM,
    "deno.json": `{ /* its own map */ "imports": { "@own": "./other.ts", }, }`,
  });
  assert.equal(kind, "bundled", message);
  const pool = new IsolatePool({ spares: 0 });
  try {
    const answer = await pool.call(appOf(code), callOf("/"));
    assert.equal(answer.kind, "response", JSON.stringify(answer));
    if (answer.kind !== "response") return;
    assert.deepEqual(await answer.response.json(), ["a note", 1, 5, "other", 4, 1, "[ 1 ]"]);
  } finally {
    await pool.close();
  }
});

const REFUSED: readonly (readonly [what: string, source: string, says: RegExp])[] = [
  ["a syntax error", `const x = 1;\nexport default { fetch( { return 1 } }`, /app\.ts:2:\d+/],
  [
    "a module that is not there",
    `import { x } from "./nowhere.ts";\nexport default { fetch: x };`,
    /nowhere\.ts/,
  ],
  ["an export that is not there", `import { z2 } from "zod";\nexport default { fetch: z2 };`, /z2/],
  [
    "a node built-in with effects",
    `import fs from "node:fs";\nexport default { fetch: () => fs };`,
    /"node:fs"/,
  ],
  ["one by import()", `export default { fetch: () => import("node:child_process") };`, /node:child_process/],
  [
    "a remote module",
    `import x from "https://example.invalid/x.ts";\nexport default { fetch: x };`,
    /example\.invalid/,
  ],
];

for (const [what, source, says] of REFUSED) {
  Deno.test(`bundle is refused for ${what}`, async () => {
    const { kind, message } = await bundleOf({ "app.ts": source });
    assert.equal(kind, "failed");
    assert.match(message, says);
  });
}

Deno.test("import check finds what a bundle made elsewhere imports (imports.ts M1)", () => {
  const issue = (code: string) => checkImports(code).map(({ line }) => line);
  assert.deepEqual(issue(`import "node:fs";`), [1]);
  assert.deepEqual(issue(`\nexport * from "npm:chalk";`), [2]);
  assert.deepEqual(issue(`import("data:text/javascript,1");`), [1]);
  assert.deepEqual(issue(`import "node:buffer"; import(name);`), []);
  assert.deepEqual(issue(`export default {`), [1]);
});

Deno.test("a place in a bundle is told as the place in its module", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    await Deno.writeTextFile(
      join(folder, "fail.ts"),
      "export type T = 1;\n\nexport const fail = (): never => {\n  throw new Error();\n};\n",
    );
    await Deno.writeTextFile(
      join(folder, "app.ts"),
      'import { fail } from "./fail.ts";\nexport default { fetch: fail };\n',
    );
    const result = await bundleApp(join(folder, "app.ts"));
    assert.equal(result.kind, "bundled");
    if (result.kind !== "bundled") return;
    const lines = new TextDecoder().decode(result.code).split("\n");
    const line = lines.findIndex((text) => text.includes("throw new Error"));
    const column = (lines[line] ?? "").indexOf("throw");
    const stack = `Error\n    at fail (blob:null/8c673003:${line + 1}:${column + 1})\n    at elsewhere:1:1`;
    assert.equal(
      result.locate(stack),
      `Error\n    at fail (${join(folder, "fail.ts")}:4:3)\n    at elsewhere:1:1`,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("texts of a client's choice are searched for places in a time that grows with them", () => {
  const locate = mapLocator(
    JSON.stringify({ version: 3, sources: [], names: [], mappings: "" }),
    (name) => name,
  );
  const bytes = 128 << 10;
  for (
    const part of ["blob:", "blob:null/", "blob:null/a", "bundle:", "bundle:1:", "bundle:1", "1", ":1:1"]
  ) {
    const text = part.repeat(bytes / part.length);
    const begunMs = cpuUsage().user / 1000;
    assert.equal(locate(`bundle:${text}`), `bundle:${text}`);
    const ms = cpuUsage().user / 1000 - begunMs;
    assert(ms < 250, `${part} again and again: ${ms.toFixed(0)} ms for 128 KiB`);
  }
});

Deno.test("a bundle names no path of the machine, so that one app has one version everywhere", async () => {
  const files = {
    "app.ts":
      'import { Hono } from "hono"; import { text } from "./own.ts"; export default new Hono().get("/", (c) => c.text(text));',
    "own.ts": "export const text = `\n// kept/as/it.is\n`;",
  };
  const [one, two] = [await bundleOf(files), await bundleOf(files)];
  assert.equal(one.kind, "bundled", one.message);
  assert.equal(one.code, two.code);
  assert(!one.code.includes("sojourn-test-") && !/^\/\/ \S*hono/m.test(one.code));
  assert(one.code.includes("// kept/as/it.is"));
});

Deno.test("bundle of a Session class with a private field is refused, at the field's place", async () => {
  const app = (members: string, more = "") => `
    import { defineApp, Session } from "sojourn";
    class Counter extends Session {
      ${members}
    }
    ${more}
    export default defineApp({ sessions: { counter: Counter }, fetch: () => new Response() });`;
  const rows: [string, RegExp | null][] = [
    [
      app("#count = 0;\n      add() { return ++this.#count; }"),
      /the class Counter has the private field #count/,
    ],
    [
      app("count = 0;\n      #double() { return this.count * 2; }\n      get() { return this.#double(); }"),
      null,
    ],
    [
      app("", "export class Inner extends Counter { #late; set() { this.#late = 1; } }"),
      /class Inner .* #late/,
    ],
    [app("", "export class Other { #own = 1; get() { return this.#own; } }"), null],
  ];
  for (const [source, says] of rows) {
    const { kind, message } = await bundleOf({ "app.ts": source });
    if (says === null) assert.equal(kind, "bundled", message);
    else assert.match(message, says);
  }
  const [first] = rows;
  const { message } = await bundleOf({ "app.ts": first?.[0] ?? "" });
  assert.match(message, /app\.ts:4:/);
});

Deno.test("bundle whose Session classes change variables of their modules is told so, at the place", async () => {
  const app = (method: string, more = "") => `
    import { defineApp, Session } from "sojourn";
    let counted = 0;
    const rooms = new Map<string, unknown>();
    const limits = { of: { each: 5 } };
    ${more}
    class Counter extends Session {
      count = 0;
      rooms = new Map<string, unknown>();
      ${method}
    }
    export const used = [counted, rooms, limits];
    export default defineApp({ sessions: { counter: Counter }, fetch: () => new Response() });`;
  const rows: [string, RegExp | null][] = [
    [app("add() { return ++counted; }"), /Counter changes counted, a variable of its module/],
    [app("add() { counted += 1; }"), /changes counted/],
    [app("enter() { rooms.set(this.id, this); }"), /changes rooms/],
    [app("more() { limits.of.each = 6; }"), /changes limits/],
    [app("less() { delete (limits.of as { each?: number }).each; }"), /changes limits/],
    [app("add() { return this.count + counted + limits.of.each + rooms.size; }"), null],
    [app("add() { this.count++; this.rooms.set(this.id, 1); }"), null],
    [app("add() { let counted = 1; counted++; return counted; }"), null],
    [app("add(rooms: Map<string, number>) { rooms.set('a', 1); }"), null],
    [app("get() { return 1; }", "export class Other { add() { return ++counted; } }"), null],
  ];
  for (const [source, says] of rows) {
    const { kind, message, warnings } = await bundleOf({ "app.ts": source });
    assert.equal(kind, "bundled", message);
    if (says === null) assert.deepEqual(warnings, [], source);
    else assert.match(warnings.join(), says);
  }
  const [first] = rows;
  assert.match((await bundleOf({ "app.ts": first?.[0] ?? "" })).warnings.join(), /app\.ts:10:\d+/);
});

Deno.test("bundle that requires what functions do not have says which and whose, and so does the error", async () => {
  const of = (parts: string) => ({
    "app.ts": `import parts from "./parts.cjs";
      export default { fetch: () => Response.json(parts) };`,
    "parts.cjs": parts,
  });
  const asks = `const fs = require("node:fs"), { join } = require("path"), net = require("net");
    module.exports = [fs, join, net];`;
  const { kind, message, warnings, code } = await bundleOf(of(asks));
  assert.equal(kind, "bundled", message);
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /parts\.cjs requires node:fs, node:net, which functions do not have/);
  assert.match(code, /a function can't require "\$\{id\}": only node:assert, .* are there/);
  const tried = `let fs; try { fs = require("fs"); } catch {} module.exports = [fs, require("path")];`;
  assert.deepEqual((await bundleOf(of(tried))).warnings, []);
});

/** The guestbook with Hono, what it uses of Zod, and the platform's part has 375 KB; all of Zod is 600 more. */
const EXAMPLE_BYTES_MAX = 450_000;

Deno.test("an example's bundle has of its packages what it uses", async () => {
  const bundled = await bundleApp(join(import.meta.dirname ?? "", "../../../examples/guestbook/app.ts"));
  assert.equal(bundled.kind, "bundled");
  assert.ok(bundled.kind === "bundled" && bundled.code.length < EXAMPLE_BYTES_MAX);
});
