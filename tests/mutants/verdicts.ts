/**
 * What people have found of mutants that nothing catches, and of rules that can have none: files of JSON in `verdicts/`. A
 * verdict of a mutant goes with its member: where that has changed it is to be looked at again.
 */

/** Why nothing has to catch a mutant. */
export interface Verdict {
  readonly id: string;
  /** `equivalent`: whoever looks from outside can't tell; `slower`: it does the same with more work; `open`: it should be caught. */
  readonly verdict: "equivalent" | "slower" | "open";
  readonly reason: string;
  /** The mutant in words, for those who read the file. */
  readonly what: string;
  /** The member's hash when it was looked at. */
  readonly member: string;
}

const folder = (root: string): string => `${root}tests/mutants/verdicts`;

const RULES = "rules.json";

const fileOf = (root: string, file: string): string =>
  `${folder(root)}/${file.replace(/\/[^/]*$/, "").replaceAll("/", "_")}.json`;

/** All verdicts, by mutant. */
export async function readVerdicts(root: string): Promise<Map<string, Verdict>> {
  const found = new Map<string, Verdict>();
  const entries = await Array.fromAsync(Deno.readDir(folder(root))).catch(() => []);
  for (const { name } of entries) {
    if (name === RULES) continue;
    const list = JSON.parse(await Deno.readTextFile(`${folder(root)}/${name}`)) as Verdict[];
    for (const verdict of list) found.set(verdict.id, verdict);
  }
  return found;
}

/** Adds verdicts of mutants of one file, or replaces them. */
export async function writeVerdicts(root: string, file: string, verdicts: readonly Verdict[]): Promise<void> {
  const path = fileOf(root, file);
  const known = JSON.parse(await Deno.readTextFile(path).catch(() => "[]")) as Verdict[];
  const all = new Map([...known, ...verdicts].map((each) => [each.id, each]));
  const sorted = [...all.values()].sort((a, b) => a.what < b.what ? -1 : 1);
  await Deno.mkdir(folder(root), { recursive: true });
  await Deno.writeTextFile(path, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** Why rules have no mutant that could be caught, by their keys. */
export async function readRuleVerdicts(root: string): Promise<Map<string, string>> {
  const text = await Deno.readTextFile(`${folder(root)}/${RULES}`).catch(() => "{}");
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
}

/** Adds such reasons, or replaces them. */
export async function writeRuleVerdicts(root: string, reasons: ReadonlyMap<string, string>): Promise<void> {
  const all = [...new Map([...await readRuleVerdicts(root), ...reasons])].sort(([a], [b]) => a < b ? -1 : 1);
  await Deno.mkdir(folder(root), { recursive: true });
  await Deno.writeTextFile(
    `${folder(root)}/${RULES}`,
    `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`,
  );
}
