/**
 * All that a command works with: the tree, its rules, its mutants, what is known of them.
 *
 * Stages of a run: the scratch tree is made → of each wanted file the mutants that have no result that counts → of each:
 * is it harmless, has it types, does any trial pass it? → those that are left are tried together on tests and simulators
 * → those that these do not catch on test files as a whole, each by itself. Results are kept as they come.
 */
import { type Attempt, type Planned, tryFiles, tryShared } from "./attempt.ts";
import { choiceOf, type Kinship, namesRule } from "./choice.ts";
import { type Mutant, mutantsOf, mutated, shownMutant } from "./mutant.ts";
import { type Outcome, type Result, Results } from "./results.ts";
import { type Citation, isTestFile, RuleBook } from "./rules.ts";
import { FOLDERS, type Scope, scopeOf } from "./scope.ts";
import { Scratch } from "./scratch.ts";
import { SIMULATORS } from "./simulators/mod.ts";
import { sampled } from "./sample.ts";
import { type Kept, Reach, survey, type Surveyed, type SurveyPart, surveyUnseen } from "./survey.ts";
import { digest, parse, type Parsed } from "./syntax.ts";
import { TypeCheck } from "./type_check.ts";

/** What a run may do. */
export interface RunOptions {
  readonly minutes: number;
  readonly effort: number;
  /** Outcomes that are tried again whatever they are. */
  readonly again: readonly string[];
  /** Only these, by their ids or by rules (`store/session/session.ts E2`, or `E2` of the files that are asked for). */
  readonly only: readonly string[];
  /** Of each rule at most so many, and none that belongs to no rule; null: all. */
  readonly each: number | null;
  /** Only single tests, no simulators: what they do not catch is said, and not kept. */
  readonly quick: boolean;
  readonly scratch: string;
}

/** What a run has done. */
export interface Tally {
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  readonly kept: number;
  readonly left: number;
  readonly ms: number;
  readonly cpuMs: number;
}

interface Tools {
  readonly reach: Reach;
  readonly types: TypeCheck;
  readonly scratch: Scratch;
  readonly effort: number;
  readonly quick: boolean;
  readonly done: (mutant: Mutant, result: Result) => Promise<void>;
}

/** What tests and simulators, and then whole test files have made of a mutant that the first did not catch. */
function together(before: Attempt | undefined, after: Attempt): Attempt {
  if (before === undefined) return after;
  const decides = after.outcome === "caught" || before.outcome === "survived" ? after : before;
  return { ...decides, tried: before.tried + after.tried, cpuMs: before.cpuMs + after.cpuMs };
}

/** See the file's header. */
export class Workshop {
  /** Of the checkout, with a slash at its end. */
  readonly root: string;
  readonly scope: Scope;
  readonly book: RuleBook;
  readonly results: Results;
  readonly #parsed: ReadonlyMap<string, Parsed>;
  readonly #citations = new Map<string, Citation[]>();
  readonly #mutants = new Map<string, Promise<Mutant[]>>();
  #cited: ReadonlySet<string> | null = null;
  readonly #suites = new Map<string, Promise<string>>();
  /** Of test files that the survey has not seen as they are. */
  readonly #surveyedTests = new Map<string, Promise<Surveyed[]>>();

  private constructor(root: string, scope: Scope, parsed: ReadonlyMap<string, Parsed>) {
    this.root = root;
    this.scope = scope;
    this.#parsed = parsed;
    this.book = new RuleBook(parsed.values());
    this.results = new Results(`${root}.cache/mutants/results.jsonl`, `${root}tests/mutants/results`);
  }

  static async open(root: string): Promise<Workshop> {
    const scope = await scopeOf(root);
    const parsed = new Map<string, Parsed>();
    for (const { path, text } of scope.sources.values()) {
      if (!path.startsWith("examples/")) parsed.set(path, parse(path, text));
    }
    return new Workshop(root, scope, parsed);
  }

  /** Files of the scope that begin with one of these; none given: all. */
  files(prefixes: readonly string[]): string[] {
    if (prefixes.length === 0) return [...this.scope.files];
    const found = this.scope.files.filter((file) => prefixes.some((prefix) => file.startsWith(prefix)));
    if (found.length === 0) throw new Error(`no file begins with ${prefixes.join(" or ")}`);
    return found;
  }

  /** Everything that cites, of code and tests. */
  citations(): Citation[] {
    return [...this.#parsed.keys()].flatMap((file) => this.citationsIn(file));
  }

  citationsIn(file: string): Citation[] {
    const parsed = this.#parsed.get(file);
    const known = this.#citations.get(file) ?? (parsed === undefined ? [] : this.book.citations(parsed));
    this.#citations.set(file, known);
    return known;
  }

  mutants(file: string): Promise<Mutant[]> {
    const parsed = this.#parsed.get(file);
    if (parsed === undefined) throw new Error(`there is no file ${file}`);
    const known = this.#mutants.get(file) ?? mutantsOf(parsed, this.citationsIn(file), this.#uncited(file));
    this.#mutants.set(file, known);
    return known;
  }

  /** Rules of a file that no code cites at a place (MU2). */
  #uncited(file: string): string[] {
    this.#cited ??= new Set(this.citations().flatMap(({ rule, covers }) => covers === null ? [] : [rule]));
    return [...this.book.rules.values()].filter((rule) => rule.file === file && !this.#cited?.has(rule.key))
      .map(({ key }) => key);
  }

  /** What is kept of the last survey; null: there was none. */
  async survey(): Promise<Kept | null> {
    const text = await Deno.readTextFile(this.#surveyFile).catch(() => null);
    return text === null ? null : JSON.parse(text) as Kept;
  }

  /** Surveys the tree as it is now. */
  async surveyNow(name: string, part: SurveyPart, say: (text: string) => void): Promise<Kept> {
    const scratch = await Scratch.open(this.root, name);
    try {
      const kept = await survey(this.scope, scratch, part, await this.survey(), say);
      await Deno.mkdir(`${this.root}.cache/mutants`, { recursive: true });
      await Deno.writeTextFile(this.#surveyFile, JSON.stringify(kept));
      return kept;
    } finally {
      scratch.close();
    }
  }

  /** Tries mutants of files. */
  async run(
    files: readonly string[],
    options: RunOptions,
    say: (mutant: Mutant, result: Result, text: string) => void,
  ): Promise<Tally> {
    const kept = await this.survey();
    if (kept === null) {
      throw new Error("what tests pass is not known yet: run `deno task mutants survey` first");
    }
    const begunMs = performance.now();
    const scratch = await Scratch.open(this.root, options.scratch);
    const counts = { kept: 0, left: 0, cpuMs: 0 }, outcomes: Partial<Record<Outcome, number>> = {};
    try {
      const types = new TypeCheck(scratch.root, files, await libraryText());
      const reach = new Reach(kept);
      const chosen = await this.#chosen(files, options);
      let tried = 0;
      for (const file of files) {
        const mutants = await this.mutants(file);
        const wanted = await this.#wanted(mutants.filter((each) => chosen.has(each)), reach, options);
        counts.kept += mutants.length - wanted.length;
        if (performance.now() >= begunMs + options.minutes * 60_000) {
          counts.left += wanted.length;
          continue;
        }
        const done = async (mutant: Mutant, result: Result) => {
          const decides = result.outcome !== "survived" && result.outcome !== "not passed";
          if (!options.quick || decides) await this.results.put(result);
          outcomes[result.outcome] = (outcomes[result.outcome] ?? 0) + 1;
          counts.cpuMs += result.cpuMs;
          const by = result.by === undefined ? "" : `: ${result.by}: ${result.says}`;
          const progress = `${++tried} of ${chosen.size}`;
          say(mutant, result, `${result.outcome} ${mutant.id} ${shownMutant(mutant)}${by}  (${progress})`);
        };
        await this.#tryAll(file, wanted, {
          ...{ reach, types, scratch, effort: options.effort, quick: options.quick },
          done,
        });
      }
    } finally {
      scratch.close();
    }
    return { outcomes, ...counts, ms: performance.now() - begunMs };
  }

  /** What a run is about, be there results or not. */
  async #chosen(files: readonly string[], { only, each }: RunOptions): Promise<ReadonlySet<Mutant>> {
    const all = (await Promise.all(files.map((file) => this.mutants(file)))).flat();
    const isAsked = ({ id, rules }: Mutant): boolean =>
      only.length === 0 || only.includes(id) ||
      rules.some((rule) => only.some((asked) => rule === asked || rule.endsWith(` ${asked}`)));
    const asked = all.filter(isAsked);
    return new Set(each === null ? asked : sampled(asked, each));
  }

  async #wanted(mutants: readonly Mutant[], reach: Reach, options: RunOptions): Promise<Mutant[]> {
    const wanted: Mutant[] = [];
    for (const mutant of mutants) if (!await this.isKept(mutant, reach, options)) wanted.push(mutant);
    return wanted;
  }

  /** Mutants of one file. */
  async #tryAll(file: string, mutants: readonly Mutant[], tools: Tools): Promise<void> {
    if (mutants.length === 0) return;
    const { reach, types, scratch, effort, quick, done } = tools;
    const text = this.#textOf(file);
    const unseen = await this.#unseen(file, reach, scratch);
    const planned: (Planned & { readonly files: readonly Surveyed[] })[] = [];
    const resultOf = (mutant: Mutant, outcome: Outcome, rest: Partial<Result> = {}): Result => ({
      ...{ id: mutant.id, member: mutant.memberHash, outcome, tried: 0, cpuMs: 0, tests: "" },
      ...rest,
    });
    for (const mutant of mutants) {
      if (mutant.harmless !== null) {
        await done(mutant, resultOf(mutant, "harmless", { says: mutant.harmless }));
        continue;
      }
      const [error] = types.newErrors(file, mutated(text, mutant));
      if (error !== undefined) {
        await done(mutant, resultOf(mutant, "no types", { says: error.slice(0, 300) }));
        continue;
      }
      const { sure, maybe } = await this.#passing(mutant, reach), all = [...sure, ...maybe, ...unseen];
      const before = (await this.results.get(mutant))?.by;
      const isFirst = (trial: Surveyed) => trialName(trial) === before;
      // Of a file that has changed since the survey nobody knows who passes the place: who was seen since comes first.
      const seen = new Set(maybe.length === 0 ? [] : sure.map(({ suite }) => suite));
      const kinshipOf = ({ suite, name }: Surveyed): Kinship =>
        seen.has(suite) || this.#isNear(suite, file) || this.#namesRule(suite, name, mutant)
          ? "near"
          : isOfFolder(suite, file)
          ? "folder"
          : "far";
      const passing = quick ? all.filter(({ kind }) => kind === "test") : all;
      const { shared, files } = choiceOf(passing, kinshipOf, isFirst, effort);
      if (passing.length === 0) await done(mutant, resultOf(mutant, "not passed"));
      else planned.push({ mutant, trials: shared, files });
    }
    const ended = async (mutant: Mutant, attempt: Attempt) => {
      const { outcome, by, says, tried, cpuMs } = attempt;
      const name = by === null ? undefined : trialName(by);
      const tests = outcome === "caught" ? await this.#suiteHash(name ?? "") : "";
      const found = name === undefined ? {} : { by: name, says };
      await done(mutant, resultOf(mutant, outcome, { tried, cpuMs: Math.round(cpuMs), tests, ...found }));
    };
    const files = new Map(planned.map((each) => [each.mutant, each.files]));
    const rest = planned.filter(({ trials }) => trials.length === 0)
      .map(({ mutant }): readonly [Mutant, Attempt | undefined] => [mutant, undefined]);
    await tryShared(planned.filter(({ trials }) => trials.length > 0), scratch, async (mutant, attempt) => {
      if (attempt.outcome === "caught" || files.get(mutant)?.length === 0) await ended(mutant, attempt);
      else rest.push([mutant, attempt]);
    });
    for (const [mutant, before] of rest) {
      await ended(mutant, together(before, await tryFiles(mutant, files.get(mutant) ?? [], scratch)));
    }
  }

  /** Whether a test is about a rule of a mutant's. */
  #namesRule(suite: string, name: string, { rules }: Mutant): boolean {
    const cited = this.citationsIn(suite).map(({ rule }) => rule);
    return namesRule(name, rules.filter((rule) => cited.includes(rule))) ||
      namesRule(name, rules) && rules.some((rule) => isOfFolder(suite, rule.split(" ")[0] ?? ""));
  }

  #isNear(test: string, file: string): boolean {
    return this.scope.sources.get(test)?.imports.some(({ path }) => path === file) === true;
  }

  /** Test files that import a file and that the survey has not seen as they are (survey.ts SU3). */
  async #unseenSuites(file: string, reach: Reach): Promise<string[]> {
    const unseen: string[] = [];
    for (const suite of this.scope.tests.keys()) {
      if (this.#isNear(suite, file) && !await reach.hasSeen(suite, this.#sourceOf(suite))) unseen.push(suite);
    }
    return unseen;
  }

  /** As trials, each run once with nothing broken. */
  async #unseen(file: string, reach: Reach, scratch: Scratch): Promise<Surveyed[]> {
    const trials: Surveyed[] = [];
    for (const suite of await this.#unseenSuites(file, reach)) {
      const known = this.#surveyedTests.get(suite) ?? surveyUnseen([suite], scratch);
      this.#surveyedTests.set(suite, known);
      trials.push(...await known);
    }
    return trials;
  }

  /** Whether what is known of a mutant counts (results.ts, RE1). */
  async isKept(mutant: Mutant, reach: Reach, options: Pick<RunOptions, "again" | "only">): Promise<boolean> {
    const result = await this.results.get(mutant);
    if (result === undefined) return false;
    if (options.only.includes(mutant.id) || options.again.includes(result.outcome)) return false;
    switch (result.outcome) {
      case "harmless":
      case "no types":
        return true;
      case "not passed":
        return (await this.#unseenSuites(mutant.file, reach)).length === 0 &&
          await this.#isNotPassed(mutant, reach);
      case "caught":
        return result.tests === await this.#suiteHash(result.by ?? "");
      case "hung":
      case "survived":
        return true;
    }
  }

  async #isNotPassed(mutant: Mutant, reach: Reach): Promise<boolean> {
    const { sure, maybe } = await this.#passing(mutant, reach);
    return sure.length + maybe.length === 0;
  }

  /** Trials that pass a mutant's place; of test files as they were when the survey saw them. */
  async #passing(mutant: Mutant, reach: Reach): ReturnType<Reach["passing"]> {
    const { sure, maybe } = await reach.passing(mutant.file, this.#textOf(mutant.file), mutant.start);
    const isSame = async ({ kind, suite }: Surveyed) =>
      kind === "simulator" || await reach.hasSeen(suite, this.#sourceOf(suite));
    const same = async (trials: readonly Surveyed[]) => {
      const are = await Promise.all(trials.map(isSame));
      return trials.filter((_, at) => are[at]);
    };
    return { sure: await same(sure), maybe: await same(maybe) };
  }

  #sourceOf(path: string): string {
    return this.scope.sources.get(path)?.text ?? "";
  }

  #textOf(file: string): string {
    return this.#parsed.get(file)?.text ?? "";
  }

  /** Of the tests that a trial runs: its file, or its simulator's folder. */
  #suiteHash(trial: string): Promise<string> {
    const suite = trial.replace(/ .*$/s, "");
    const known = this.#suites.get(suite) ?? digest(this.#suiteText(suite));
    this.#suites.set(suite, known);
    return known;
  }

  #suiteText(suite: string): string {
    const folder = SIMULATORS[suite]?.folder;
    const files = [...this.scope.sources.values()].filter(({ path }) =>
      folder === undefined ? path === suite : path.startsWith(`${folder}/`) && isTestFile(path)
    );
    return files.map(({ path, text }) => `${path}\n${text}`).join("\n");
  }

  get #surveyFile(): string {
    return `${this.root}.cache/mutants/survey.json`;
  }
}

/** Whether a test file lies where those of a file's folder do. */
function isOfFolder(suite: string, file: string): boolean {
  const folder = file.replace(/[^/]*$/, "");
  return suite.startsWith(folder) || suite.startsWith(`tests/${folder}`);
}

/** `homes seed 12`, `tests/store/rows/rows_test.ts`. */
export const trialName = ({ suite, name }: Surveyed): string => name === "" ? suite : `${suite} ${name}`;

/** Whether rules of a file are of the protocols. */
export const isProtocol = (file: string): boolean => FOLDERS.some((folder) => file.startsWith(`${folder}/`));

async function libraryText(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["types"] }).output();
  return new TextDecoder().decode(stdout);
}
