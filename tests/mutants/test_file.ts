/**
 * A test file as trials, one for each of its tests, in a process that runs many of them, and many mutants.
 *
 * TF1  A test is what `Deno.test` is called with as the file is loaded. Its steps are run where it asks for them; one
 *      that fails fails the test, once it has ended.
 * TF2  Nothing looks for operations and resources that a test leaves open.
 */
import type { Finding, Simulator } from "./simulators/simulator.ts";

type Body = (context: unknown) => unknown;

interface Registered {
  readonly name: string;
  readonly body: Body;
}

/** @throws what the file throws as it is loaded. */
export async function loadTestFile(path: string): Promise<Simulator> {
  const found: Registered[] = [];
  const original = Deno.test;
  Reflect.set(Deno, "test", collector(found));
  try {
    await import(new URL(`../../${path}`, import.meta.url).href);
  } finally {
    Reflect.set(Deno, "test", original);
  }
  const byName = new Map<string, Body>();
  for (const { name, body } of found) {
    for (let nth = 1;; nth++) {
      const key = nth === 1 ? name : `${name} (${nth})`;
      if (byName.has(key)) continue;
      byName.set(key, body);
      break;
    }
  }
  return {
    trials: [...byName.keys()],
    run: async (trial) => {
      const body = byName.get(trial);
      if (body === undefined) throw new Error(`${path} has no test '${trial}'`);
      return await runTest(trial, body);
    },
  };
}

/** What stands for `Deno.test` while a file is loaded. */
function collector(found: Registered[]): unknown {
  const add = (...args: readonly unknown[]) => {
    const { name, body, isIgnored } = readDefinition(args);
    if (!isIgnored) found.push({ name, body });
  };
  return Object.assign(add, { ignore: () => {}, only: add });
}

/** Reads the ways in which tests and steps are given. */
function readDefinition(args: readonly unknown[]): Registered & { readonly isIgnored: boolean } {
  let name = "", body: Body = () => {}, isIgnored = false;
  for (const arg of args) {
    if (typeof arg === "string") name = arg;
    else if (typeof arg === "function") {
      body = arg as Body;
      name ||= arg.name;
    } else if (typeof arg === "object" && arg !== null) {
      const { name: given, fn, ignore } = arg as { name?: string; fn?: Body; ignore?: boolean };
      name = given ?? name;
      body = fn ?? body;
      isIgnored = ignore === true;
    }
  }
  return { name, body, isIgnored };
}

/** TF1 */
async function runTest(name: string, body: Body): Promise<Finding | null> {
  const wrong: Finding[] = [];
  const context = (own: string): unknown => ({
    name: own,
    origin: "",
    step: async (...args: readonly unknown[]): Promise<boolean> => {
      const step = readDefinition(args);
      if (step.isIgnored) return true;
      try {
        await step.body(context(step.name));
        return true;
      } catch (error) {
        wrong.push(findingOf(`${own}: ${step.name}`, error));
        return false;
      }
    },
  });
  try {
    await body(context(name));
  } catch (error) {
    wrong.unshift(findingOf(name, error));
  }
  return wrong[0] ?? null;
}

function findingOf(checker: string, error: unknown): Finding {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return { checker, message: text };
}
