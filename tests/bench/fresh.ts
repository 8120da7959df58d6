/**
 * Fresh processes, pair by pair: contenders run one after another in processes of their own, in an order that
 * turns round with every run, so that warm caches, a drifting disk and a busy neighbour fall on all alike.
 *
 * A contender's script exports nothing: it reads its input with {@link freshInput}, and answers with
 * {@link freshAnswer}.
 */

const INPUT = "SOJOURN_BENCH_INPUT";
/** Begins the line that holds the answer; other lines of stdout are the script's own talk. */
const ANSWER = "bench-answer ";

/** One thing to be measured: a script that is run in a process of its own. */
export interface Contender {
  readonly name: string;
  readonly script: URL;
  readonly input?: unknown;
  /** Flags of `deno run`. */
  readonly flags?: readonly string[];
}

/** The input of this process, given by {@link runFresh}. */
export const freshInput = (): unknown => JSON.parse(Deno.env.get(INPUT) ?? "null");

/** Gives this process's answer to the one that measures. */
export const freshAnswer = (answer: unknown): void => console.log(ANSWER + JSON.stringify(answer));

/**
 * Runs a contender once and returns what it answered.
 *
 * @throws Error when it fails, or answers nothing; the message holds the end of its stderr.
 */
export async function runFresh(contender: Contender, signal?: AbortSignal): Promise<unknown> {
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...contender.flags ?? [], contender.script.href],
    env: { [INPUT]: JSON.stringify(contender.input ?? null) },
    stdout: "piped",
    stderr: "piped",
    ...(signal === undefined ? {} : { signal }),
  }).output();
  const decoder = new TextDecoder();
  const line = decoder.decode(output.stdout).split("\n").findLast((text) => text.startsWith(ANSWER));
  if (!output.success || line === undefined) {
    const tail = decoder.decode(output.stderr).slice(-2000);
    throw new Error(`${contender.name} ended with code ${output.code} and no answer:\n${tail}`);
  }
  return JSON.parse(line.slice(ANSWER.length));
}

/** Runs all contenders `runs` times, alternating their order; answers by name, in the order of the runs. */
export async function runPairs(
  contenders: readonly Contender[],
  runs: number,
): Promise<Map<string, unknown[]>> {
  const answers = new Map<string, unknown[]>(contenders.map((contender) => [contender.name, []]));
  for (let run = 0; run < runs; run++) {
    const order = run % 2 === 0 ? contenders : contenders.toReversed();
    for (const contender of order) answers.get(contender.name)?.push(await runFresh(contender));
  }
  return answers;
}
