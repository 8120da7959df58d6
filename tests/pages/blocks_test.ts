import assert from "node:assert/strict";
import { isAsShown, stepsOf } from "./blocks.ts";

const PAGE = `# A page
\`\`\`ts cafe/app.ts
export default {};
\`\`\`
\`\`\`ts
ignored();
\`\`\`
\`\`\`sh
one
# a remark
two \\
  three
\`\`\`
\`\`\`console
$ four
4
four
$ five \\
  six
\`\`\`
<!-- not run: it never ends -->

\`\`\`sh
seven
\`\`\`
`;

Deno.test("a page's steps are its files and its commands, in order", () => {
  const command = (line: number, text: string, prints: string | null = null) => ({
    kind: "command" as const,
    line,
    text,
    prints,
  });
  assert.deepEqual(stepsOf(PAGE), [
    { kind: "file", path: "cafe/app.ts", text: "export default {};\n" },
    command(9, "one"),
    command(12, "two \\\n  three"),
    command(15, "four", "4\nfour\n"),
    command(18, "five \\\n  six"),
    { kind: "left out", line: 24, why: "it never ends" },
  ]);
});

Deno.test("what is printed is compared but for what the page leaves out", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["a\nb\n", "a\nb\n", true],
    ["a\r\nb\r\n", "a\nb\n", true],
    ["a\nb\nc\n", "a\n…\nc\n", true],
    ["a\nc\n", "a\n…\nc\n", true],
    ["a\nb\nc\n", "a\nc\n", false],
    ['{"id":"17","n":1}\n', '{"id":"…","n":1}\n', true],
    ['{"id":"17","n":2}\n', '{"id":"…","n":1}\n', false],
    ["cloud      2 ms\n", "cloud  2 ms\n", true],
    ["axb\n", "a.b\n", false],
    ["a\n", "a\nb\n", false],
  ];
  for (const [printed, shown, same] of cases) {
    assert.equal(isAsShown(printed, shown), same, JSON.stringify([printed, shown]));
  }
});
