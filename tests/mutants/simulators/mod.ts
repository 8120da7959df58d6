/** What mutants are tried in, by name, each loaded when it is needed: the simulators, and test files by their paths. */
import { loadTestFile } from "../test_file.ts";
import type { Simulator } from "./simulator.ts";

/** Where each lives; its folder's files decide with it whether a result is still one (results.ts). */
export const SIMULATORS: Readonly<Record<string, { readonly folder: string; readonly file: string }>> = {
  store: { folder: "tests/sim", file: "store.ts" },
  owners: { folder: "tests/owners/sim", file: "owners.ts" },
  homes: { folder: "tests/stateful/sim", file: "homes.ts" },
  hosts: { folder: "tests/stateful/hosts_sim", file: "hosts.ts" },
  peers: { folder: "tests/stateful/peers", file: "peers.ts" },
  turns: { folder: "tests/functions/sessions/turn", file: "turns.ts" },
  sites: { folder: "tests/sites", file: "sites.ts" },
};

const loaded = new Map<string, Promise<Simulator>>();

/** @throws Error where there is no such simulator, nor a test file of that path. */
export function loadSuite(name: string): Promise<Simulator> {
  const known = loaded.get(name) ?? load(name);
  loaded.set(name, known);
  return known;
}

async function load(name: string): Promise<Simulator> {
  if (isTestFile(name)) return await loadTestFile(name);
  const known = SIMULATORS[name];
  if (known === undefined) {
    throw new Error(`there is no simulator '${name}', but ${Object.keys(SIMULATORS).join(", ")}`);
  }
  const { simulator } = await import(new URL(known.file, import.meta.url).href) as {
    readonly simulator: Simulator;
  };
  return simulator;
}

/** Whether a suite is a test file, and not a simulator. */
export const isTestFile = (suite: string): boolean => suite.endsWith("_test.ts");
