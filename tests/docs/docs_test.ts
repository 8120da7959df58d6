import assert from "node:assert/strict";
import { z } from "zod";
import { parseTopology } from "../../runtime/dev/topology.ts";
import { parseSiteConfig, siteFileSchema } from "../../runtime/site/config.ts";
import { walk } from "../structure/walk.ts";

const root = new URL("../../", import.meta.url);
const read = (path: string) => Deno.readTextFile(new URL(path, root));
const pages = ["README.md", "CHANGELOG.md"];
for await (const path of walk(root, "docs")) if (path.endsWith(".md")) pages.push(path);

Deno.test("links between pages lead somewhere", async () => {
  const lost: string[] = [];
  for (const page of pages) {
    for (const [, target = ""] of (await read(page)).matchAll(/\]\(([^)\s#]+)[^)]*\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const url = new URL(target, new URL(page, root));
      if (await Deno.stat(url).then(() => false, () => true)) lost.push(`${page}: ${target}`);
    }
  }
  assert.deepEqual(lost, []);
});

Deno.test("files that pages name in code exist", async () => {
  const lost: string[] = [];
  for (const page of pages) {
    const named = (await read(page)).matchAll(
      /`((?:store|functions|runtime|tests|examples|docs)\/[\w./-]+)`/g,
    );
    for (const [, path = ""] of named) {
      if (await Deno.stat(new URL(path, root)).then(() => false, () => true)) lost.push(`${page}: ${path}`);
    }
  }
  assert.deepEqual(lost, []);
});

Deno.test("site files and topologies in pages are what they say", async () => {
  const found = { sites: 0, topologies: 0 };
  for (const page of ["README.md", "docs/operating.md"]) {
    for (const [, json = ""] of (await read(page)).matchAll(/```json\n([\s\S]*?)```/g)) {
      const value = JSON.parse(json) as Record<string, unknown>;
      if ("sites" in value) {
        parseTopology(value);
        found.topologies++;
      } else {
        assert.equal(parseSiteConfig(value, {}, "/etc/sojourn").id, "edge-1");
        found.sites++;
      }
    }
  }
  assert.deepEqual(found, { sites: 2, topologies: 1 });
});

/** A JSON schema, as far as a site file's goes. */
interface FieldSchema {
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
}

/** Fields with their defaults, by path. */
const fieldsOf = (schema: FieldSchema, path: string): [string, unknown][] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    field.properties === undefined
      ? [[path + name, field.default] as [string, unknown]]
      : fieldsOf(field, `${path}${name}.`)
  );

Deno.test("the page on operating names every field of a site file with its default", async () => {
  const rows = (await read("docs/operating.md")).split("\n").filter((line) => line.startsWith("| `"));
  const schema = z.toJSONSchema(siteFileSchema, { io: "input", unrepresentable: "any" }) as FieldSchema;
  const fields = fieldsOf(schema, "");
  assert(fields.length > 30);
  const absent = fields.filter(([name, value]) => {
    const row = rows.find((line) => line.split("|")[1]?.includes(`\`${name}\``));
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    return row === undefined || (value !== undefined && !row.split("|")[2]?.includes(`\`${shown}\``));
  });
  assert.deepEqual(absent.filter(([name]) => name !== "parent"), []);
});

Deno.test("the README, CI and the tasks agree on the commands", async () => {
  const readme = await read("README.md");
  const firstScreen = readme.split("\n").slice(0, 30).join("\n");
  for (const task of ["dev", "test"]) assert(firstScreen.includes(`npx --yes deno@2.9.6 task ${task}`), task);
  const ci = await read(".ci/run");
  assert.match(ci, /^exec npx --yes deno@2\.9\.6 task test /m);
  const { tasks } = JSON.parse(await read("deno.json")) as { tasks: Record<string, string> };
  const known = Object.keys(tasks);
  for (const page of pages) {
    for (const [, task = ""] of (await read(page)).matchAll(/deno(?:@2\.9\.6)? task ([a-z]+)/g)) {
      assert(known.includes(task), `${page} names the task ${task}`);
    }
  }
});

Deno.test("the page on HTTP lists every error code with its status", async () => {
  const page = await read("docs/http.md");
  const listed = new Map<string, string>();
  for (const [, status = "", cell = ""] of page.matchAll(/^\| (\d{3}) +\| ([^|]*)\|/gm)) {
    for (const [, code = ""] of cell.matchAll(/`([a-z_]+)`/g)) listed.set(code, status);
  }
  const source = await read("functions/vocabulary/problem.ts");
  const own = new Set(["internal", "admin_failed"]); // faults of ours, which nobody can plan for
  const codes = [...source.matchAll(/^ {2}([a-z_]+): \[(\d{3}), /gm)];
  assert.ok(codes.length > 50, "the list of codes was found");
  for (const [, code = "", status = ""] of codes) {
    if (!own.has(code)) assert.equal(listed.get(code), status, code);
  }
});
