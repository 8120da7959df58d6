/**
 * What people have found of mutants that nothing catches: a file of JSON for each folder of the project in `verdicts/`,
 * by mutant. A verdict goes with the mutant's member: where that has changed it is to be looked at again.
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

const fileOf = (root: string, file: string): string =>
  `${folder(root)}/${file.replace(/\/[^/]*$/, "").replaceAll("/", "_")}.json`;

/** All verdicts, by mutant. */
export async function readVerdicts(root: string): Promise<Map<string, Verdict>> {
  const found = new Map<string, Verdict>();
  const entries = await Array.fromAsync(Deno.readDir(folder(root))).catch(() => []);
  for (const { name } of entries) {
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
