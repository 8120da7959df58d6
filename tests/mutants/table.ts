/**
 * `docs/mutants.md`: what is known of all mutants, per file, per rule, and of each that nothing catches the verdict.
 *
 * TA1  It is made of results that count for the tree as it is; what has none is counted as not tried.
 */
import { join } from "node:path";
import { type Mutant, shownMutant } from "./mutant.ts";
import type { Result } from "./results.ts";
import { type Citation, isTestFile, type Rule } from "./rules.ts";
import { isProtocol, type Workshop } from "./workshop.ts";
import { readVerdicts, type Verdict } from "./verdicts.ts";

/** A mutant with what is known of it. */
export interface Known {
  readonly mutant: Mutant;
  /** Absent where it was not tried, or its member has changed since (TA1). */
  readonly result: Result | undefined;
  readonly verdict: Verdict | undefined;
}

/** What the page is made of. */
export interface Page {
  readonly files: readonly { readonly file: string; readonly known: readonly Known[] }[];
  readonly rules: readonly Rule[];
  readonly citations: readonly Citation[];
}

const PAGE = "docs/mutants.md";

/** Writes the page. */
export async function writeTable(workshop: Workshop): Promise<void> {
  const verdicts = await readVerdicts(workshop.root);
  const files: { file: string; known: Known[] }[] = [];
  for (const file of workshop.scope.files) {
    const known: Known[] = [];
    for (const mutant of await workshop.mutants(file)) {
      known.push({
        mutant,
        result: await workshop.results.get(mutant),
        verdict: verdicts.get(mutant.id),
      });
    }
    files.push({ file, known });
  }
  await workshop.results.publish(files.flatMap(({ known }) => known.map(({ mutant }) => mutant)));
  const rules = [...workshop.book.rules.values()].filter(({ file }) => isProtocol(file) && !isTestFile(file));
  const path = join(workshop.root, PAGE);
  await Deno.writeTextFile(path, pageOf({ files, rules, citations: workshop.citations() }));
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", path] }).output();
  if (!success) throw new Error(`${PAGE} can't be formatted: ${new TextDecoder().decode(stderr)}`);
}

/** How a mutant stands, in the words of the page. */
type Standing = "caught" | "refused" | "harmless" | "equivalent" | "slower" | "open" | "not tried";

function standingOf({ result, verdict }: Known): Standing {
  if (result === undefined) return "not tried";
  if (result.outcome === "no types") return "refused";
  if (result.outcome === "caught" || result.outcome === "harmless") return result.outcome;
  return verdict?.verdict ?? "open";
}

/** The page's text. */
export function pageOf({ files, rules, citations }: Page): string {
  const tried = files.filter(({ known }) => known.some(({ result }) => result !== undefined));
  const all = files.flatMap(({ known }) => known);
  return [
    HEAD,
    `Of ${all.length} mutants in ${files.length} files ${countsIn(all)}.`,
    "## Files\n\n" + filesTable(tried),
    "## Rules\n\n" + RULES_HEAD + "\n\n" + sampleOf(rules, all) + "\n\n" + rulesTables(rules, citations, all),
    "## What nothing catches\n\n" + LEFT_HEAD + "\n\n" + leftLists(tried),
  ].join("\n\n") + "\n";
}

/** Rules that a page names, by their keys. */
export function rulesNamed(page: string): string[] {
  const [, rules = ""] = /^## Rules$([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? [];
  return rules.split(/^### /m).slice(1).flatMap((part) => {
    const [file = ""] = part.split("\n");
    return [...part.matchAll(/^\| ([A-Z]{1,3}\d{1,2}[a-z]?) +\|/gm)].map(([, id]) => `${file.trim()} ${id}`);
  });
}

const HEAD = `# Mutants

<!-- Written by \`deno task mutants table\`: change tests/mutants/table.ts, or the verdicts, not this page. -->

A mutant is a file of the project with one change: a condition that is always true, a statement left out, \`<\` for
\`<=\`. A test that passes with a rule broken does not test it; here each place of the protocols is broken, one at a time,
and this page says who noticed. [How it is done](testing.md#mutants) is told in the page on testing.`;

const RULES_HEAD =
  `A mutant belongs to a rule where code cites the rule at the place that is changed; what belongs to none
so stands for the rules of its file that no code cites. "Cited" counts the places of code,
of asserts and errors, and of tests that name it, in this order. "Judged" are those that nothing has to catch; "not run"
are those that have no result yet: a rule whose mutants all stand there is not known to be tested, nor not to be.`;

const LEFT_HEAD =
  `Each with a verdict. _Equivalent_: whoever looks from outside can't tell. _Slower_: the same comes of it, with more
work, more traffic or later. _Open_: nothing that was tried notices it, with the number of the trials; more trials may
(\`--effort\`).`;

function countsIn(all: readonly Known[]): string {
  const counts = countsOf(all);
  const words: readonly (readonly [Standing, string])[] = [
    ["caught", "are caught"],
    ["refused", "are refused by the compiler"],
    ["harmless", "are of counters, notes, logs or texts of errors"],
    ["equivalent", "are equivalent to what is there"],
    ["slower", "only cost time"],
    ["open", "are open"],
    ["not tried", "have not been run yet, or not since their code was changed"],
  ];
  return words.filter(([standing]) => (counts.get(standing) ?? 0) > 0)
    .map(([standing, says]) => `${counts.get(standing)} ${says}`).join(", ");
}

const countsOf = (known: readonly Known[]): Map<Standing, number> => {
  const counts = new Map<Standing, number>();
  for (const each of known) counts.set(standingOf(each), (counts.get(standingOf(each)) ?? 0) + 1);
  return counts;
};

const COLUMNS: readonly Standing[] = [
  "caught",
  "refused",
  "harmless",
  "equivalent",
  "slower",
  "open",
  "not tried",
];

function filesTable(files: Page["files"]): string {
  const rows = files.map(({ file, known }) => {
    const counts = countsOf(known);
    return [`\`${file}\``, `${known.length}`, ...COLUMNS.map((standing) => `${counts.get(standing) ?? 0}`)];
  });
  return table(["file", "mutants", ...COLUMNS], rows);
}

/** What of the rules was looked at, and what not. */
function sampleOf(rules: readonly Rule[], all: readonly Known[]): string {
  const byRule = byRuleOf(all);
  let none = 0, untried = 0, caught = 0, judged = 0, open = 0, tried = 0;
  for (const { key } of rules) {
    const known = madeOf(byRule, key), counts = countsOf(known);
    const left = counts.get("not tried") ?? 0;
    tried += known.length - left;
    if (known.length === 0) none++;
    else if (left === known.length) untried++;
    else if (counts.has("open")) open++;
    else if (counts.has("caught")) caught++;
    else judged++;
  }
  return `This is a sample: of ${rules.length} rules ${
    rules.length - none - untried
  } have had mutants tried, ${
    (tried / Math.max(1, rules.length - none - untried)).toFixed(1)
  } each on average. Of these, ${caught} had none left open, ${judged} only such as nothing has to catch, and of ${open} at
least one is open. Of ${untried} rules nothing has been tried yet, and ${none} have no mutant: where they are cited stands nothing
that the tool can break.`;
}

function byRuleOf(all: readonly Known[]): ReadonlyMap<string, readonly Known[]> {
  const byRule = new Map<string, Known[]>();
  for (const known of all) {
    for (const rule of known.mutant.rules) {
      const list = byRule.get(rule) ?? [];
      list.push(known);
      byRule.set(rule, list);
    }
  }
  return byRule;
}

/** Mutants of a rule that a test may be expected to see. */
const madeOf = (byRule: ReturnType<typeof byRuleOf>, rule: string): Known[] =>
  (byRule.get(rule) ?? []).filter((each) => !NOT_MADE.has(standingOf(each)));

function rulesTables(rules: readonly Rule[], citations: readonly Citation[], all: readonly Known[]): string {
  const byRule = byRuleOf(all);
  const cited = new Map<string, Record<Citation["by"], number>>();
  for (const { rule, by } of citations) {
    const counts = cited.get(rule) ?? { code: 0, assert: 0, test: 0 };
    counts[by]++;
    cited.set(rule, counts);
  }
  return [...Map.groupBy(rules, ({ file }) => file)].map(([file, own]) => {
    const rows = own.map(({ key, id, text }) => {
      const known = madeOf(byRule, key);
      const { code, assert, test } = cited.get(key) ?? { code: 0, assert: 0, test: 0 };
      const counts = countsOf(known);
      return [
        id,
        cellOf(text),
        `${code} / ${assert} / ${test}`,
        `${known.length}`,
        `${counts.get("caught") ?? 0}`,
        `${counts.get("open") ?? 0}`,
        `${(counts.get("equivalent") ?? 0) + (counts.get("slower") ?? 0)}`,
        `${counts.get("not tried") ?? 0}`,
        cellOf(catchersOf(known)),
      ];
    });
    return `### ${file}\n\n` +
      table(["rule", "says", "cited", "mutants", "caught", "open", "judged", "not run", "caught by"], rows);
  }).join("\n\n");
}

/** Of which nobody expects that a test sees them. */
const NOT_MADE: ReadonlySet<Standing> = new Set(["refused", "harmless"]);
const TEXT_CHARS = 90;
const CATCHERS = 3;

const cellOf = (text: string): string => {
  const line = text.length <= TEXT_CHARS ? text : `${text.slice(0, TEXT_CHARS - 1).replace(/\s\S*$/, "")} …`;
  return line.replaceAll("|", "\\|");
};

/** Who caught mutants, those of most first: a simulator with its checker, or a test file. */
function catchersOf(known: readonly Known[]): string {
  const counts = new Map<string, number>();
  for (const { result } of known) {
    if (result?.outcome !== "caught" || result.by === undefined) continue;
    const [suite = ""] = result.by.split(" ");
    const name = suite.endsWith(".ts")
      ? suite.replace(/^tests\//, "")
      : `${suite}: ${(result.says ?? "").split(":")[0]}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, CATCHERS).map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function leftLists(files: Page["files"]): string {
  return files.flatMap(({ file, known }) => {
    const left = known.filter((each) => LEFT.has(standingOf(each)));
    if (left.length === 0) return [];
    const lines = left.map((each) => {
      const { mutant, result, verdict } = each;
      const where = `${mutant.member}: ${shownMutant(mutant).replace(/^.*?: /, "")}`;
      const why = verdict === undefined ? unjudged(result) : verdict.reason;
      const again = verdict !== undefined && verdict.member !== mutant.memberHash
        ? " (its member has changed since)"
        : "";
      return `- ${quoted(where)}: _${standingOf(each)}_: ${why}${again}`;
    });
    return [`### ${file}\n\n${lines.join("\n")}`];
  }).join("\n\n");
}

/** What came of a mutant that nobody has judged. */
function unjudged(result: Result | undefined): string {
  if (result?.outcome === "not passed") return "no trial of the survey comes here";
  return result === undefined
    ? ""
    : `${result.outcome} ${result.tried} ${result.tried === 1 ? "trial" : "trials"}`;
}

const LEFT: ReadonlySet<Standing> = new Set(["equivalent", "slower", "open"]);

const quoted = (text: string): string => text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
