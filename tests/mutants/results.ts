/**
 * What has become of mutants, kept between runs: lines of JSON.
 *
 * RE1  A result is of a mutant (mutant.ts MU1) and its member's text, wherever that lies: moving a file changes nothing,
 *      changing the member does. That of one that was caught counts as long as the test that caught it is as it was.
 * RE2  Results are added as they come: a run that is ended goes on where it was.
 * RE3  A run writes where git does not look. What the page is made of is kept in the repository beside it, written by
 *      whoever writes the page, so that it can be gone on with elsewhere; what a run has found since counts before it.
 */
import { dirname } from "node:path";
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
  /** Of the member's text. */
  readonly member: string;
  readonly outcome: Outcome;
  /** Of what caught it, the trial, and what that said; of one that hung, the trial. */
  readonly by?: string;
  readonly says?: string;
  /** Trials that were made. */
  readonly tried: number;
  readonly cpuMs: number;
  /** Of the tests that decided. */
  readonly tests: string;
}

const keyOf = ({ id, member }: Pick<Result, "id" | "member">): string => `${id} ${member}`;

/** See the file's header. */
export class Results {
  readonly #path: string;
  readonly #published: string;
  #known: Promise<Map<string, Result>> | null = null;

  /**
   * @param path of the file that runs write to
   * @param published the folder of the repository (RE3)
   */
  constructor(path: string, published: string) {
    this.#path = path;
    this.#published = published;
  }

  async get({ id, memberHash }: Mutant): Promise<Result | undefined> {
    return (await this.#all()).get(keyOf({ id, member: memberHash }));
  }

  async put(result: Result): Promise<void> {
    (await this.#all()).set(keyOf(result), result);
    await Deno.mkdir(dirname(this.#path), { recursive: true });
    await Deno.writeTextFile(this.#path, `${JSON.stringify(result)}\n`, { append: true });
  }

  #all(): Promise<Map<string, Result>> {
    return this.#known ??= this.#load();
  }

  async #load(): Promise<Map<string, Result>> {
    const entries = await Array.fromAsync(Deno.readDir(this.#published)).catch(() => []);
    const paths = [...entries.map(({ name }) => `${this.#published}/${name}`), this.#path];
    const results = new Map<string, Result>();
    for (const path of paths) {
      for (const line of (await Deno.readTextFile(path).catch(() => "")).split("\n")) {
        if (line === "") continue;
        const result = JSON.parse(line) as Result;
        results.set(keyOf(result), result);
      }
    }
    return results;
  }

  /** Keeps in the repository what is known of mutants, by the folders that they lie in, and nothing else (RE3). */
  async publish(mutants: readonly Mutant[]): Promise<void> {
    await Deno.remove(this.#published, { recursive: true }).catch(() => {});
    await Deno.mkdir(this.#published, { recursive: true });
    for (const [folder, own] of Map.groupBy(mutants, ({ file }) => file.replace(/\/[^/]*$/, ""))) {
      const known = await Promise.all(own.map((mutant) => this.get(mutant)));
      const lines = known.flatMap((result) => result === undefined ? [] : [`${JSON.stringify(result)}\n`]);
      const path = `${this.#published}/${folder.replaceAll("/", "_")}.jsonl`;
      if (lines.length > 0) await Deno.writeTextFile(path, lines.join(""));
    }
  }
}
