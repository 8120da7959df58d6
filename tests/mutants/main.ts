/**
 * `deno task mutants COMMAND`: what of the protocols' rules a test would notice if it were broken. See {@link USAGE};
 * docs/testing.md tells the rest.
 */
import { parseArgs } from "node:util";
import { shownMutant } from "./mutant.ts";
import { type Outcome } from "./results.ts";
import { writeTable } from "./table.ts";
import { readVerdicts, type Verdict, writeRuleVerdicts, writeVerdicts } from "./verdicts.ts";
import { Workshop } from "./workshop.ts";

const USAGE =
  `deno task mutants COMMAND [FILE…]: FILE is a path of the repository, or how one begins; none: all

rules [FILE…]     rules, with how many places of code, asserts and tests cite each
survey            finds what each test and each seed of the simulators passes; takes some minutes
  --one-in N      of each simulator's seeds one in N
  --tests PATH,…  only test files that begin with one of these; what else the last survey says stays
list [FILE…]      mutants
run [FILE…]       tries those that have no result that counts; what is ended is gone on with by the same command
  --minutes N     at most so long
  --effort N      times the trials that a mutant is worth otherwise
  --again WHAT    those that ended so, too: survived, hung, caught …
  --only WHAT,…   these mutants, or those of these rules: 7894e95363, E2, 'store/session/session.ts E2'
  --each N        of each rule at most N, of different kinds; those of no rule are left out
  --quick         only on single tests, not on simulators; what they do not catch is not kept
  --scratch NAME  another scratch tree, so that two runs can go on at once
show [FILE…]      those that nothing caught and nobody has judged; --outcome WHAT: those that ended so
judge WORD ID…    keeps a verdict, equivalent, slower or open, with --reason TEXT
judge rule KEY…   keeps why rules ('store/model/ports.ts S1') have no mutant that could be caught, with --reason TEXT
table             writes docs/mutants.md, tests/mutants/rules.json, and tests/mutants/results beside it

--json: rules, list, run and show write a line of JSON for each thing`;

const { values, positionals: [command = "", ...rest] } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "100000" },
    effort: { type: "string", default: "1" },
    again: { type: "string", default: "" },
    only: { type: "string", default: "" },
    each: { type: "string" },
    "one-in": { type: "string", default: "1" },
    tests: { type: "string", default: "" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    scratch: { type: "string", default: "run" },
    outcome: { type: "string" },
    reason: { type: "string" },
  },
});
const say = (value: unknown, text: string): void => console.log(values.json ? JSON.stringify(value) : text);
const listed = (text: string): string[] => text.split(",").filter((each) => each !== "");

function rules(workshop: Workshop): void {
  const files = rest.length === 0 ? null : workshop.files(rest);
  const counts = new Map<string, Record<"code" | "assert" | "test", number>>();
  for (const { rule, by } of workshop.citations()) {
    const count = counts.get(rule) ?? { code: 0, assert: 0, test: 0 };
    count[by]++;
    counts.set(rule, count);
  }
  for (const rule of workshop.book.rules.values()) {
    if (files !== null && !files.includes(rule.file)) continue;
    const { code, assert, test } = counts.get(rule.key) ?? { code: 0, assert: 0, test: 0 };
    say(
      { rule: rule.key, code, assert, test, text: rule.text },
      `${rule.key}  code ${code}, asserts ${assert}, tests ${test}  ${rule.text}`,
    );
  }
}

async function list(workshop: Workshop): Promise<void> {
  for (const file of workshop.files(rest)) {
    for (const mutant of await workshop.mutants(file)) {
      const cites = mutant.rules.length === 0 ? "" : `  [${mutant.rules.join(", ")}]`;
      say(
        mutant,
        `${mutant.id} ${shownMutant(mutant)}${cites}${
          mutant.harmless === null ? "" : `  (${mutant.harmless})`
        }`,
      );
    }
  }
}

async function run(workshop: Workshop): Promise<void> {
  const tally = await workshop.run(workshop.files(rest), {
    minutes: Number(values.minutes),
    effort: Number(values.effort),
    again: listed(values.again),
    only: listed(values.only),
    each: values.each === undefined ? null : Number(values.each),
    quick: values.quick,
    scratch: values.scratch,
  }, (mutant, result, text) => say({ ...result, shown: shownMutant(mutant), rules: mutant.rules }, text));
  const tried = Object.values(tally.outcomes).reduce((sum, count) => sum + count, 0);
  const perMinute = tally.ms === 0 ? 0 : tried / tally.ms * 60_000;
  console.log(JSON.stringify({ ...tally, perMinute: Number(perMinute.toFixed(1)) }));
}

const UNCAUGHT: readonly Outcome[] = ["survived", "hung", "not passed"];

async function show(workshop: Workshop): Promise<void> {
  const verdicts = await readVerdicts(workshop.root);
  for (const file of workshop.files(rest)) {
    for (const mutant of await workshop.mutants(file)) {
      const result = await workshop.results.get(mutant);
      if (result === undefined) continue;
      const isWanted = values.outcome === undefined
        ? UNCAUGHT.includes(result.outcome) && !verdicts.has(mutant.id)
        : result.outcome === values.outcome;
      if (!isWanted) continue;
      const by = result.by === undefined ? "" : `  (${result.by}: ${result.says})`;
      say(
        { ...result, shown: shownMutant(mutant), rules: mutant.rules },
        `${result.outcome} ${mutant.id} ${shownMutant(mutant)}${by}`,
      );
    }
  }
}

async function judge(workshop: Workshop): Promise<number> {
  const [word = "", ...ids] = rest, { reason } = values;
  if (word === "rule" && reason !== undefined) return await judgeRules(workshop, ids, reason);
  if ((word !== "equivalent" && word !== "slower" && word !== "open") || reason === undefined) {
    console.error(USAGE);
    return 2;
  }
  const wanted = new Set(ids);
  for (const file of workshop.scope.files) {
    const verdicts: Verdict[] = (await workshop.mutants(file)).filter(({ id }) => wanted.delete(id)).map((
      mutant,
    ) => ({
      id: mutant.id,
      verdict: word,
      reason,
      what: shownMutant(mutant).replace(/:\d+ /, " "),
      member: mutant.memberHash,
    }));
    if (verdicts.length > 0) await writeVerdicts(workshop.root, file, verdicts);
  }
  for (const id of wanted) console.error(`there is no mutant ${id}`);
  return wanted.size === 0 ? 0 : 1;
}

async function judgeRules(workshop: Workshop, keys: readonly string[], reason: string): Promise<number> {
  const unknown = keys.filter((key) => !workshop.book.rules.has(key));
  for (const key of unknown) console.error(`there is no rule ${key}`);
  if (unknown.length > 0) return 1;
  await writeRuleVerdicts(workshop.root, new Map(keys.map((key) => [key, reason])));
  return 0;
}

if (values.help) {
  console.log(USAGE);
  Deno.exit(0);
}
const workshop = await Workshop.open(new URL("../../", import.meta.url).pathname);
switch (command) {
  case "rules":
    rules(workshop);
    break;
  case "survey": {
    const { trials, wrong } = await workshop.surveyNow(
      values.scratch,
      { oneIn: Number(values["one-in"]), tests: listed(values.tests) },
      console.error,
    );
    for (const { suite, name, says } of wrong) console.log(`not tried: ${suite} ${name}: ${says}`);
    console.log(`${trials.length} trials, ${wrong.length} that are not tried`);
    break;
  }
  case "list":
    await list(workshop);
    break;
  case "run":
    await run(workshop);
    break;
  case "show":
    await show(workshop);
    break;
  case "judge":
    Deno.exitCode = await judge(workshop);
    break;
  case "table":
    await writeTable(workshop);
    break;
  default:
    console.error(USAGE);
    Deno.exitCode = 2;
}
