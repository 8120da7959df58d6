/**
 * A probe asks one question of a Web API and answers something that can be printed. The same table is asked in
 * plain Deno and inside an isolate (../web_apis_test.ts): what is printed must be equal.
 */

/** What a probe may need from outside. */
export interface ProbeContext {
  /** Address of an HTTP server that echoes (../echo_server.ts), without a slash at its end. */
  readonly echo: string;
  /** The request that runs the probes. */
  readonly request: Request;
}

/** Probes by name. */
export type Probes = Readonly<Record<string, (context: ProbeContext) => unknown>>;

/** The answer of a probe that waits for ever. */
const LATE = "did not answer within 5 s";
const PROBE_MS_MAX = 5_000;

/** Runs every probe, one after another, and prints what each answered or threw. */
export async function runProbes(probes: Probes, context: ProbeContext): Promise<Record<string, string>> {
  const out: Record<string, string> = {};
  for (const [name, probe] of Object.entries(probes)) out[name] = await runProbe(probe, context);
  return out;
}

async function runProbe(probe: Probes[string], context: ProbeContext): Promise<string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise((resolve) => timer = setTimeout(() => resolve(LATE), PROBE_MS_MAX));
    return show(await Promise.race([probe(context), late]));
  } catch (error) {
    return `threw ${showError(error)}`;
  } finally {
    clearTimeout(timer);
  }
}

/** What an expression throws, as a value. */
export function thrown(work: () => unknown): string {
  try {
    return `did not throw: ${show(work())}`;
  } catch (error) {
    return showError(error);
  }
}

/** What a promise rejects with, as a value. */
export async function rejection(work: () => unknown): Promise<string> {
  try {
    return `did not reject: ${show(await work())}`;
  } catch (error) {
    return showError(error);
  }
}

const show = (value: unknown): string =>
  typeof value === "string"
    ? value
    : Deno.inspect(value, { depth: 8, colors: false, strAbbreviateSize: 500 });

function showError(error: unknown): string {
  if (error instanceof DOMException) return `DOMException ${error.name}: ${error.message}`;
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return `a value: ${show(error)}`;
}
