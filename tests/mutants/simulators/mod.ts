/** The simulators that mutants are tried in, by name, each loaded when it is needed. */
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

/** @throws Error where there is no such simulator. */
export async function loadSimulator(name: string): Promise<Simulator> {
  const known = SIMULATORS[name];
  if (known === undefined) {
    throw new Error(`there is no simulator '${name}', but ${Object.keys(SIMULATORS).join(", ")}`);
  }
  const { simulator } = await import(new URL(known.file, import.meta.url).href) as {
    readonly simulator: Simulator;
  };
  return simulator;
}
