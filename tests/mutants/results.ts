/**
 * What has become of mutants, kept between runs: a file of JSON lines for each file of the project.
 *
 * RE1  A result counts as long as the mutant's member, and the tests that it was tried on, are as they were; of one
 *      that was caught, the test that caught it. Asked strictly, the whole file has to be as it was.
 * RE2  Results are added as they come: a run that is ended goes on where it was.
 * RE3  A run writes where git does not look. What the page is made of is kept in the repository beside it, written by
 *      whoever writes the page, so that it can be gone on with elsewhere; what a run has found since counts before it.
 */
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { walk } from "../structure/walk.ts";
import type { Mutant } from "./mutant.ts";

/** How a mutant ended. */
export type Outcome =
  /** A trial found something. */
  | "caught"
  /** All trials that were made found nothing. */
  | "survived"
  /** No trial passes its place. */
  | "not passed"
  /** A trial did not end, or filled its memory: no test said so. */
  | "hung"
  /** The compiler refuses it. */
  | "no types"
  /** It need not be run (harmless.ts). */
  | "harmless";

/** A mutant's result. */
export interface Result {
  readonly id: string;
  readonly outcome: Outcome;
  /** Of what caught it, the trial, and what that said; of one that hung, the trial. */
  readonly by?: string;
  readonly says?: string;
  /** Trials that were made. */
  readonly tried: number;
  readonly cpuMs: number;
  readonly member: string;
  readonly file: string;
  /** Of the tests that decided. */
  readonly tests: string;
}

/** See the file's header. */
export class Results {
  readonly #folder: string;
  readonly #published: string;
  readonly #files = new Map<string, Map<string, Result>>();

  /**
   * @param folder that runs write to
   * @param published of the repository (RE3)
   */
  constructor(folder: string, published: string) {
    this.#folder = folder;
    this.#published = published;
  }

  async get(mutant: Mutant): Promise<Result | undefined> {
    return (await this.of(mutant.file)).get(mutant.id);
  }

  /** All of a file, by mutant. */
  async of(file: string): Promise<ReadonlyMap<string, Result>> {
    return await this.#load(file);
  }

  async put(file: string, result: Result): Promise<void> {
    (await this.#load(file)).set(result.id, result);
    const path = this.#path(file);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeTextFile(path, `${JSON.stringify(result)}\n`, { append: true });
  }

  /** Writes a file anew, with the last result of each mutant that there still is. */
  async compact(file: string, mutants: readonly Mutant[]): Promise<void> {
    const known = await this.#load(file);
    const kept = mutants.flatMap(({ id }) => known.get(id) ?? []);
    this.#files.set(file, new Map(kept.map((result) => [result.id, result])));
    if (kept.length === 0) return;
    await Deno.writeTextFile(
      this.#path(file),
      kept.map((result) => `${JSON.stringify(result)}\n`).join(""),
    );
  }

  async #load(file: string): Promise<Map<string, Result>> {
    const known = this.#files.get(file);
    if (known !== undefined) return known;
    const texts = [this.#publishedPath(file), this.#path(file)].map((path) =>
      Deno.readTextFile(path).catch(() => "")
    );
    const text = (await Promise.all(texts)).join("\n");
    const results = new Map<string, Result>();
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const result = JSON.parse(line) as Result;
      results.set(result.id, result);
    }
    this.#files.set(file, results);
    return results;
  }

  /** Keeps in the repository what is known of a file's mutants (RE3). */
  async publish(file: string, results: readonly Result[]): Promise<void> {
    if (results.length === 0) return;
    const path = this.#publishedPath(file);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeTextFile(path, results.map((result) => `${JSON.stringify(result)}\n`).join(""));
  }

  /** Files that have results in the repository. */
  async publishedFiles(): Promise<string[]> {
    const found: string[] = [];
    for await (const path of walk(pathToFileURL(`${this.#published}/`), ".")) {
      if (path.endsWith(".jsonl")) found.push(path.replace(/^\.\//, "").replace(/\.jsonl$/, ".ts"));
    }
    return found;
  }

  #publishedPath(file: string): string {
    return `${this.#published}/${file.replace(/\.ts$/, "")}.jsonl`;
  }

  #path(file: string): string {
    return `${this.#folder}/${file.replace(/\.ts$/, "")}.jsonl`;
  }
}
