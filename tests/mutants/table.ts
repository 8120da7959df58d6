/**
 * What is known of all mutants: `docs/mutants.md` for people, and `tests/mutants/rules.json`, which says of each rule who
 * catches its mutants.
 *
 * TA1  Both are made of results that count for the tree as it is; what has none is counted as not tried.
 * TA2  A rule stands for itself where a mutant of it is caught; else the verdicts of its mutants say why not. One that has a
 *      verdict itself has no place of code that could be broken: what is caught near it is caught of something else.
 */
import { join } from "node:path";
import { type Mutant, shownMutant } from "./mutant.ts";
import type { Result } from "./results.ts";
import { type Citation, isTestFile, type Rule } from "./rules.ts";
import { readRuleVerdicts, readVerdicts, type Verdict } from "./verdicts.ts";
import { isProtocol, type Workshop } from "./workshop.ts";

/** A mutant with what is known of it. */
export interface Known {
  readonly mutant: Mutant;
  /** Absent where it was not tried, or its member has changed since (TA1). */
  readonly result: Result | undefined;
  readonly verdict: Verdict | undefined;
}

/** What the page is made of. */
export interface Page {
  readonly known: readonly Known[];
  readonly rules: readonly Rule[];
  readonly citations: readonly Citation[];
  /** Why a rule has no mutant that could be caught, by its key. */
  readonly reasons: ReadonlyMap<string, string>;
}

/** One line of `rules.json`. */
export interface RuleLine {
  readonly rule: string;
  readonly standing: RuleStanding;
  /** Places of code, of asserts and errors, and of tests that name it. */
  readonly cited: readonly [code: number, asserts: number, tests: number];
  readonly caught: number;
  /** Of which somebody has found that nothing has to catch them. */
  readonly judged: number;
  readonly open: number;
  readonly untried: number;
  /** Who caught how many, those of most first: a simulator with its checker, or a test file. */
  readonly by: Readonly<Record<string, number>>;
  /** Why none could be caught. */
  readonly reason?: string;
}

/** `judged`: it has a reason of its own, or all of its mutants that were tried have one (TA2). */
export type RuleStanding = "caught" | "judged" | "open" | "not tried";

const PAGE = "docs/mutants.md";
export const RULES = "tests/mutants/rules.json";

/** Writes the page and the rules, and publishes results. */
export async function writeTable(workshop: Workshop): Promise<void> {
  const verdicts = await readVerdicts(workshop.root);
  const known: Known[] = [];
  for (const file of workshop.scope.files) {
    for (const mutant of await workshop.mutants(file)) {
      const result = await workshop.results.get(mutant);
      known.push({ mutant, result, verdict: verdictOf(verdicts.get(mutant.id), mutant) });
    }
  }
  await workshop.results.publish(known.map(({ mutant }) => mutant));
  const page: Page = {
    known,
    rules: [...workshop.book.rules.values()].filter(({ file }) => isProtocol(file) && !isTestFile(file)),
    citations: workshop.citations(),
    reasons: await readRuleVerdicts(workshop.root),
  };
  const lines = linesOf(page);
  const rules = join(workshop.root, RULES);
  await Deno.writeTextFile(
    rules,
    `[\n${lines.map((line) => `  ${JSON.stringify(line)}`).join(",\n")}\n]\n`,
  );
  const path = join(workshop.root, PAGE);
  await Deno.writeTextFile(path, pageOf(page, lines));
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", path, rules] })
    .output();
  if (!success) {
    throw new Error(`${PAGE} and ${RULES} can't be formatted: ${new TextDecoder().decode(stderr)}`);
  }
}

/** A verdict counts as long as the member is what somebody looked at. */
const verdictOf = (verdict: Verdict | undefined, { memberHash }: Mutant): Verdict | undefined =>
  verdict?.member === memberHash ? verdict : undefined;

/** How a mutant stands, in the words of the page. */
type Standing =
  | "caught"
  /** What it was tried on never ends: the gate stops that at its limit (tests/gate/run.ts R1). */
  | "hangs"
  | "refused"
  | "harmless"
  | "equivalent"
  | "slower"
  | "open"
  | "not tried";

function standingOf({ result, verdict }: Known): Standing {
  if (result === undefined) return "not tried";
  if (result.outcome === "no types") return "refused";
  if (result.outcome === "caught" || result.outcome === "harmless") return result.outcome;
  return verdict?.verdict ?? (result.outcome === "hung" ? "hangs" : "open");
}

/** What is known of each rule, in the order of files. */
export function linesOf({ known, rules, citations, reasons }: Page): RuleLine[] {
  const byRule = new Map<string, Known[]>();
  for (const each of known) {
    for (const rule of each.mutant.rules) byRule.set(rule, [...byRule.get(rule) ?? [], each]);
  }
  const cited = new Map<string, Record<Citation["by"], number>>();
  for (const { rule, by } of citations) {
    const counts = cited.get(rule) ?? { code: 0, assert: 0, test: 0 };
    counts[by]++;
    cited.set(rule, counts);
  }
  return rules.map(({ key }): RuleLine => {
    const own = byRule.get(key) ?? [], counts = countsOf(own), reason = reasons.get(key);
    const { code, assert, test } = cited.get(key) ?? { code: 0, assert: 0, test: 0 };
    const judged = (counts.get("equivalent") ?? 0) + (counts.get("slower") ?? 0);
    const caught = (counts.get("caught") ?? 0) + (counts.get("hangs") ?? 0), open = counts.get("open") ?? 0;
    const standing = reason !== undefined
      ? "judged"
      : caught > 0
      ? "caught"
      : judged > 0 && open === 0
      ? "judged"
      : open > 0
      ? "open"
      : "not tried";
    return {
      rule: key,
      standing,
      cited: [code, assert, test],
      ...{ caught, judged, open, untried: counts.get("not tried") ?? 0, by: catchersOf(own) },
      ...standing === "judged" && reason !== undefined && { reason },
    };
  });
}

/** The page's text. */
export function pageOf(page: Page, lines: readonly RuleLine[]): string {
  const { known } = page, tried = known.filter((each) => standingOf(each) !== "not tried");
  return [
    HEAD,
    rulesSummary(lines),
    `Of ${known.length} mutants ${tried.length} have been tried: ${countsIn(tried)}.`,
    `## Folders\n\n${foldersTable(page, lines)}`,
    `## Who catches them\n\n${CATCHERS_HEAD}\n\n${catchersTable(tried)}`,
    `## Rules without a mutant that is caught\n\n${RULES_HEAD}\n\n${rulesLeft(page, lines)}`,
    `## Open\n\n${OPEN_HEAD}\n\n${openLists(tried)}`,
  ].join("\n\n") + "\n";
}

const HEAD = `# Mutants

<!-- Written by \`deno task mutants table\`: change tests/mutants/table.ts, or the verdicts, not this page. -->

A mutant is a file of the project with one change: a condition that is always true, a statement left out, \`<\` for
\`<=\`. A test that passes with a rule broken does not test it; here places of the protocols are broken, one at a time,
and this page says who noticed. [How it is done](testing.md#mutants) is told in the page on testing. Who catches the
mutants of each rule is in \`${RULES}\`, what came of each mutant in \`tests/mutants/results/\`, and why nothing has to
catch some in \`tests/mutants/verdicts/\`.`;

const CATCHERS_HEAD =
  `A mutant is tried until one thing has caught it, the cheap before the dear: that a simulator
has few here says nothing of what it would catch.`;

const RULES_HEAD =
  `A rule that tells of the shape of data, of time that is not spent, or of what is not done at all,
leaves no place to break; others have only mutants that nobody could tell from what is there.`;

const OPEN_HEAD =
  `Nothing that was tried notices these, with the number of the trials, and nobody has said that nothing
has to; more trials may notice (\`--effort\`).`;

function rulesSummary(lines: readonly RuleLine[]): string {
  const counts = countedBy(lines, ({ standing }) => standing);
  const n = (standing: RuleStanding) => counts.get(standing) ?? 0;
  return `Of ${lines.length} numbered rules of \`store/\`, \`functions/sessions/\` and \`runtime/stateful/\` ${
    n("caught")
  } have a mutant that is caught; of ${n("judged")} there is a reason why there can't be one; of ${
    n("open")
  } all that were tried are open; of ${n("not tried")} none has been tried since their code was changed.`;
}

function countsIn(tried: readonly Known[]): string {
  const counts = countsOf(tried);
  const words: readonly (readonly [Standing, string])[] = [
    ["caught", "are caught"],
    ["hangs", "never end, so that the gate stops them at its limit"],
    ["refused", "are refused by the compiler"],
    ["harmless", "are of counters, notes, logs or texts of errors"],
    ["equivalent", "are equivalent to what is there"],
    ["slower", "only cost time"],
    ["open", "are open"],
  ];
  return words.filter(([standing]) => (counts.get(standing) ?? 0) > 0)
    .map(([standing, says]) => `${counts.get(standing)} ${says}`).join(", ");
}

const countsOf = (known: readonly Known[]): Map<Standing, number> => countedBy(known, standingOf);

function countedBy<T, K>(all: readonly T[], keyOf: (each: T) => K): Map<K, number> {
  const counts = new Map<K, number>();
  for (const each of all) counts.set(keyOf(each), (counts.get(keyOf(each)) ?? 0) + 1);
  return counts;
}

const folderOf = (path: string): string => path.replace(/ .*$/s, "").replace(/\/[^/]*$/, "");

function foldersTable({ known }: Page, lines: readonly RuleLine[]): string {
  const mutants = Map.groupBy(known, ({ mutant }) => folderOf(mutant.file));
  const rows = [...Map.groupBy(lines, ({ rule }) => folderOf(rule))].map(([folder, rules]) => {
    const standings = countedBy(rules, ({ standing }) => standing);
    const counts = countsOf(mutants.get(folder) ?? []);
    const n = <K>(of: ReadonlyMap<K, number>, ...keys: readonly K[]) =>
      `${keys.reduce((sum, key) => sum + (of.get(key) ?? 0), 0)}`;
    return [
      `\`${folder}/\``,
      `${rules.length}`,
      n(standings, "caught"),
      n(standings, "judged"),
      n(standings, "open"),
      n(standings, "not tried"),
      n<Standing>(counts, "caught", "hangs"),
      n<Standing>(counts, "equivalent", "slower"),
      n<Standing>(counts, "open"),
    ];
  });
  const head = [
    "folder",
    "rules",
    "caught",
    "judged",
    "open",
    "not tried",
    "mutants caught",
    "judged",
    "open",
  ];
  return table(head, rows);
}

/** Catchers of a page: simulators, and tests by folder. */
const CATCHERS = 20;

function catchersTable(tried: readonly Known[]): string {
  const names = tried.flatMap((each) => {
    const name = catcherOf(each);
    return name === null ? [] : [name.endsWith("_test.ts") ? `tests of \`${folderOf(name)}/\`` : name];
  });
  const rows = [...countedBy(names, (name) => name)].sort((a, b) => b[1] - a[1]).slice(0, CATCHERS);
  return table(["who", "mutants"], rows.map(([name, count]) => [name, `${count}`]));
}

/** A simulator with its checker, or a test file; null: it is not caught. */
function catcherOf({ result }: Known): string | null {
  const isNoticed = result?.outcome === "caught" || result?.outcome === "hung";
  if (!isNoticed || result?.by === undefined) return null;
  const [suite = ""] = result.by.split(" ");
  return suite.endsWith(".ts") ? suite : `${suite}: ${(result.says ?? "").split(":")[0]}`;
}

function catchersOf(known: readonly Known[]): Record<string, number> {
  const names = known.flatMap((each) => catcherOf(each) ?? []);
  return Object.fromEntries([...countedBy(names, (name) => name)].sort((a, b) => b[1] - a[1]));
}

function rulesLeft({ rules, known }: Page, lines: readonly RuleLine[]): string {
  const texts = new Map(rules.map(({ key, text }) => [key, text]));
  const left = lines.filter(({ standing }) => standing !== "caught");
  return [...Map.groupBy(left, ({ rule }) => rule.split(" ")[0] ?? "")].map(([file, own]) => {
    const items = own.map(({ rule, standing, reason }) => {
      const says = shortened(texts.get(rule) ?? "", RULE_CHARS);
      const why = reason ?? (standing === "judged" ? reasonsOf(rule, known) : standing);
      return `- **${rule.split(" ")[1]}** ${says} _${why}_`;
    });
    return `### ${file}\n\n${items.join("\n")}`;
  }).join("\n\n");
}

/** Of a rule of which all mutants are judged. */
const reasonsOf = (rule: string, known: readonly Known[]): string =>
  [
    ...new Set(
      known.filter(({ mutant }) => mutant.rules.includes(rule)).flatMap(({ verdict }) =>
        verdict === undefined ? [] : [verdict.reason]
      ),
    ),
  ].join("; ");

const RULE_CHARS = 90;

const shortened = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, chars - 1).replace(/\s\S*$/, "")} …`;

/** Rules that a page names, by their keys. */
export function rulesNamed(page: string): string[] {
  const [, rules = ""] = /^## Rules without[^\n]*$([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? [];
  return rules.split(/^### /m).slice(1).flatMap((part) => {
    const [file = ""] = part.split("\n");
    return [...part.matchAll(/^- \*\*([A-Z]{1,3}\d{1,2}[a-z]?)\*\*/gm)].map(([, id]) =>
      `${file.trim()} ${id}`
    );
  });
}

function openLists(tried: readonly Known[]): string {
  const open = tried.filter((each) => standingOf(each) === "open");
  return [...Map.groupBy(open, ({ mutant }) => mutant.file)].map(([file, own]) => {
    const lines = own.map(({ mutant, result, verdict }) => {
      const where = `${mutant.member}: ${shownMutant(mutant).replace(/^.*?: /, "")}`;
      return `- ${quoted(where)}: ${verdict?.reason ?? unjudged(result)}`;
    });
    return `### ${file}\n\n${lines.join("\n")}`;
  }).join("\n\n");
}

/** What came of a mutant that nobody has judged. */
function unjudged(result: Result | undefined): string {
  if (result?.outcome === "not passed") return "no trial of the survey comes here";
  return result === undefined
    ? ""
    : `${result.outcome} ${result.tried} ${result.tried === 1 ? "trial" : "trials"}`;
}

const quoted = (text: string): string => text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
