/**
 * A numbered rule that no assert and no test cites is a wish.
 *
 * RT1  Rules that nobody cites stand in uncited_rules.txt, one a line, sorted. The list only gets shorter: a new rule is
 *      cited where it is kept or tested (citations.ts says how), and what is cited is taken out.
 * RT2  A citation means one file.
 * RT3  A label is of one file: who finds it anywhere finds its rule. There are {@link SHARED} rules whose label another
 *      file has, too, and fewer from time to time: a new rule has its file's own prefix.
 */
import assert from "node:assert/strict";
import { citationsOf, labelsOf } from "./citations.ts";
import { readSources, sourceOf } from "./sources.ts";

const root = new URL("../../", import.meta.url);

/** Rules whose label another file has, too (RT3). */
const SHARED = 755;

async function readPages(): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  const folder = new URL("docs/protocol/", root);
  for await (const { name } of Deno.readDir(folder)) {
    pages.set(name, await Deno.readTextFile(new URL(name, folder)));
  }
  return pages;
}

Deno.test("rules of production code are cited by an assert or a test, but for those of a list that only gets shorter (RT1, RT2)", async () => {
  const { all, uncited, ambiguous } = citationsOf(await readSources(root), await readPages());
  assert.ok(all.length > 1200, `only ${all.length} rules were found`);
  const listed = (await Deno.readTextFile(new URL("uncited_rules.txt", import.meta.url))).trimEnd().split(
    "\n",
  );
  const known = new Set(listed);
  const found = new Set(uncited);
  assert.deepEqual(
    uncited.filter((rule) => !known.has(rule)),
    [],
    "no assert's message and no test cites these rules; name them there, as `(H4)` or `file.ts H4`",
  );
  assert.deepEqual(
    listed.filter((rule) => !found.has(rule)),
    [],
    "these are cited by now, or are gone: take them out of uncited_rules.txt",
  );
  assert.deepEqual(listed, [...known].sort(), "uncited_rules.txt is sorted, and has each once");
  assert.deepEqual(
    ambiguous,
    [],
    "several files have such a rule: name the one that is meant, as `file.ts H4`",
  );
});

Deno.test("labels are of one file each, but for a number that only gets smaller (RT3)", async () => {
  const { all } = citationsOf(await readSources(root), await readPages());
  const files = new Map<string, string[]>();
  for (const [file = "", label = ""] of all.map((rule) => rule.split(" "))) {
    files.set(label, [...files.get(label) ?? [], file]);
  }
  const shared = [...files].filter(([, { length }]) => length > 1);
  const count = shared.reduce((sum, [, { length }]) => sum + length, 0);
  const list = shared.map(([label, paths]) => `${label}: ${paths.join(", ")}`).sort().join("\n");
  assert.ok(count <= SHARED, `${count} rules have labels that other files have, too:\n${list}`);
  assert.equal(count, SHARED, "there are fewer by now: lower SHARED");
});

const text = (...lines: readonly string[]): string => lines.join("\n") + "\n";
const rules = (...ids: readonly string[]): string =>
  text("/**", " * Rules.", " *", ...ids.map((id) => ` * ${id}  So it is.`), " */");

/** Who cites what in a small tree. */
function cited(
  files: Readonly<Record<string, string>>,
  pages: Readonly<Record<string, string>> = {},
): string[] {
  const sources = new Map(Object.entries(files).map(([path, each]) => [path, sourceOf(path, each)]));
  const { citedBy } = citationsOf(sources, new Map(Object.entries(pages)));
  return [...citedBy].map(([rule, by]) => `${rule} < ${[...by].join(", ")}`).sort();
}

Deno.test("rules are found by their labels, in columns and in lists, and what prose names is none", () => {
  const columns = text("/**", " * H1  One,", " *     H7 in it.", " * H10 Two.", " */");
  assert.deepEqual(labelsOf(columns), ["H1", "H10"]);
  assert.deepEqual(labelsOf(text("/**", " * A list.", " *", " * AB1 One.", " * AB2 Two.", " */")), [
    "AB1",
    "AB2",
  ]);
  assert.deepEqual(labelsOf(text("/**", " * It is told by", " * AB1 Then more.", " */", "// AB2  No.")), []);
});

Deno.test("asserts and errors cite in their texts, and what else a file says, or a comment, does not", () => {
  assert.deepEqual(
    cited({
      "store/gate.ts": rules("G1", "G2", "G3", "G4", "G5") + text(
        'assert(n >= 0, "G1: more left than came");',
        "if (open) throw new Error(`it is open (G2)`);",
        "// G3",
        'const name = "G4 it is called";',
        'assert(n < 9); const other = "G5: nothing";',
      ),
    }),
    ["store/gate.ts G1 < store/gate.ts", "store/gate.ts G2 < store/gate.ts"],
  );
});

Deno.test("tests cite in names and comments: of the file named, mirrored, imported, or alone in having it (CI1, CI3)", () => {
  const files = {
    "store/gate.ts": rules("G1", "G2", "G3", "G4"),
    "store/deep/wall.ts": rules("G1", "G2", "W1"),
    "store/deep/moat.ts": rules("G3", "M1"),
    "functions/moat.ts": rules("G4"),
  };
  const by = (path: string, ...lines: readonly string[]) =>
    cited({ ...files, [path]: text(...lines) }).map((each) => each.replace(/ < .*/, ""));
  assert.deepEqual(by("tests/store/gate_test.ts", 'test("it opens (G1 to G3)", f);'), [
    "store/gate.ts G1",
    "store/gate.ts G2",
    "store/gate.ts G3",
  ]);
  assert.deepEqual(by("tests/x_test.ts", 'import "../store/deep/wall.ts";', "// G1"), [
    "store/deep/wall.ts G1",
  ]);
  assert.deepEqual(by("tests/store/deep/x_test.ts", 'test("it opens (G1)", f);'), ["store/deep/wall.ts G1"]);
  assert.deepEqual(by("tests/x_test.ts", "/** Of gate.ts, G2. */", 'test("it is shut (G2)", f);'), [
    "store/gate.ts G2",
  ]);
  assert.deepEqual(by("tests/x_test.ts", 'test("it is wide (M1)", f);'), ["store/deep/moat.ts M1"]);
  assert.deepEqual(by("tests/x_test.ts", 'test("it is wide (G4)", f);', 'f("W1");', 'f("as W1 was");'), []);
  assert.deepEqual(by("tests/store/gate_test.ts", "/**", " * G1  A rule of its own.", " */", "// G1"), []);
});

Deno.test("a citation that several files may be meant by counts for none, and is told (RT2)", () => {
  const sources = new Map(
    Object.entries({
      "store/gate.ts": rules("G1"),
      "store/wall.ts": rules("G1"),
      "tests/x_test.ts": text('import "../store/gate.ts";', 'import "../store/wall.ts";', "// G1"),
    }).map(([path, each]) => [path, sourceOf(path, each)]),
  );
  const { uncited, ambiguous } = citationsOf(sources, new Map());
  assert.deepEqual(uncited, ["store/gate.ts G1", "store/wall.ts G1"]);
  assert.deepEqual(ambiguous, ["tests/x_test.ts: G1: store/gate.ts, store/wall.ts"]);
});

Deno.test("a rule of a page is cited with the page, where the file repeats it and names that (CI2)", () => {
  const files = {
    "store/gate.ts": rules("G1") + "// gates.md\n",
    "store/deep/wall.ts": rules("G1"),
    "tests/x_test.ts": "/** What docs/protocol/gates.md G1 says. */\n",
  };
  assert.deepEqual(cited(files, { "gates.md": "- **G1** It opens.\n" }), [
    "store/gate.ts G1 < tests/x_test.ts",
  ]);
  assert.deepEqual(cited(files, { "gates.md": "- **G2** It opens.\n" }), []);
});
