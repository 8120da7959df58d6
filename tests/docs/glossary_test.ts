/** The glossary tells each word once, and each entry leads to where its word is told in full. */
import { strict as assert } from "node:assert";

const page = new URL("../../docs/glossary.md", import.meta.url);

/** Its entries, each on one line. */
const entries = (await Deno.readTextFile(page)).split(/\n(?=- |#|\n)/)
  .filter((block) => block.startsWith("- "))
  .map((block) => block.replace(/\s+/g, " ").trim());

/** The anchor of a heading, as GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

Deno.test("the glossary tells each word once", () => {
  assert(entries.length > 150, `${entries.length} entries`);
  const told = entries.flatMap((entry) => {
    const [head = ""] = /^- (?:\*\*[^*]+\*\*(?:, )?)+/.exec(entry) ?? [];
    const words = [...head.matchAll(/\*\*([^*]+?)\.?\*\*/g)].map(([, word = ""]) => word.toLowerCase());
    assert(words.length > 0 && head.endsWith(".**"), `no word: ${entry}`);
    return words;
  });
  assert.deepEqual(told.filter((word, at) => told.indexOf(word) !== at), []);
});

Deno.test("each entry of the glossary ends with a page or a file", () => {
  const places = /(?:\[[^\]]+\]\([^)]+\)(?:, [A-Z]+\d+)?|`(?:store|functions|runtime|tests)\/[\w./-]+`)$/;
  assert.deepEqual(entries.filter((entry) => !places.test(entry)), []);
});

Deno.test("headings that the glossary links to are there", async () => {
  const lost: string[] = [];
  for (const [, target = "", anchor = ""] of entries.join("\n").matchAll(/\]\(([^)#]+)#([^)]+)\)/g)) {
    const text = await Deno.readTextFile(new URL(target, page));
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
    if (!headings.includes(anchor)) lost.push(`${target}#${anchor}`);
  }
  assert.deepEqual(lost, []);
});

Deno.test("rules that the glossary names are on the pages that it links to", async () => {
  const lost: string[] = [];
  for (
    const [, target = "", rule = ""] of entries.join("\n").matchAll(/\]\(([^)#]+)[^)]*\), ([A-Z]+\d+)$/gm)
  ) {
    const text = await Deno.readTextFile(new URL(target, page));
    if (!new RegExp(`\\*\\*${rule}\\b`).test(text)) lost.push(`${target}: ${rule}`);
  }
  assert.deepEqual(lost, []);
});
