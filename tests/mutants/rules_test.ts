/** How rules and those who cite them are found. */
import assert from "node:assert/strict";
import { RuleBook, rulesOf } from "./rules.ts";
import { parse } from "./syntax.ts";

const HEADER = `/**
 * A gate.
 *
 * G1  It opens once: who comes
 *     later finds it open.
 * G2  Nothing passes a closed gate.
 * G10 It is shut in the end.
 * What follows is prose, and H1 is spoken of.
 */
import { other } from ${'"./other.ts"'};
`;
const GATE = parse(
  "store/gate.ts",
  `${HEADER}
export class Gate {
  #open = false; // G10

  /** G1, and what fence.ts F2 says of it. */
  open(): void {
    if (this.#open) return; // PROTOCOL G2
    // G2
    this.#open = other();
    if (!this.#open) throw new Error("G1: it is shut");
  }

  /** Another's: H1 to H3. */
  shut(): void {}
}
`,
);
const OTHER = parse(
  "store/other.ts",
  "/**\n * Another.\n *\n * H1  One.\n * H2  Two.\n * H3  Three.\n */\nexport const other = () => true;\n",
);
const FENCE = parse(
  "store/fence.ts",
  "/**\n * A fence.\n *\n * F2  It is high.\n */\nexport const fence = 1;\n",
);
const TEST = parse(
  "tests/store/gate_test.ts",
  'import { Gate } from "../../store/gate.ts";\nDeno.test("a gate opens once (G1)", () => {});\n// other.ts H2\n',
);
const book = new RuleBook([GATE, OTHER, FENCE, TEST]);

Deno.test("rules are lines of a doc comment that begin with an id, with what is indented below (RU1)", () => {
  assert.deepEqual(rulesOf(GATE).map(({ key, text }) => [key, text]), [
    ["store/gate.ts G1", "It opens once: who comes later finds it open."],
    ["store/gate.ts G2", "Nothing passes a closed gate."],
    ["store/gate.ts G10", "It is shut in the end."],
  ]);
});

Deno.test("a citation names its own file's rule, that of a file it names, or of the one imported file that has it (RU2)", () => {
  const named = book.citations(GATE).map(({ rule, by }) => `${rule} ${by}`).sort();
  assert.deepEqual(named, [
    "store/fence.ts F2 code",
    "store/gate.ts G1 assert",
    "store/gate.ts G1 code",
    "store/gate.ts G10 code",
    "store/gate.ts G2 code",
    "store/other.ts H1 code",
    "store/other.ts H2 code",
    "store/other.ts H3 code",
  ]);
  assert.deepEqual(book.citations(TEST).map(({ rule, by }) => `${rule} ${by}`).sort(), [
    "store/gate.ts G1 test",
    "store/other.ts H2 test",
  ]);
});

Deno.test("a citation covers what begins on its line, else what comes next (RU3)", () => {
  const covered = (rule: string) =>
    book.citations(GATE).filter((each) => each.rule === rule && each.by === "code")
      .map(({ covers }) => covers === null ? null : GATE.text.slice(...covers));
  assert.deepEqual(covered("store/gate.ts G10"), ["#open = false;"]);
  assert.deepEqual(covered("store/gate.ts G2"), ["this.#open = other();"]);
  const [open] = covered("store/gate.ts G1");
  assert.ok(open?.startsWith("open(): void {") && open.endsWith("}"), open ?? "nothing");
});
