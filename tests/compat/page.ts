/** docs/compatibility.md, as tests hold it against their lists of differences. */
import assert from "node:assert/strict";

/** The part of the page under a heading, to the next heading of any level. */
export async function pageSection(heading: string): Promise<string> {
  const page = await Deno.readTextFile(new URL("../../docs/compatibility.md", import.meta.url));
  const [, section] = page.split(`\n${heading}\n`);
  assert.ok(section !== undefined, `docs/compatibility.md has no ${heading}`);
  return section.split(/\n#+ /)[0] ?? "";
}

/** First cells of the rows of a section's tables. */
export const rowNames = (section: string): string[] =>
  [...section.matchAll(/^\| (\S.*?) +\|/gm)].map(([, name = ""]) => name).filter((name) =>
    name !== "probe" && !name.startsWith("--")
  );
