/**
 * Benchmark `handoff`: what it costs a session to go on at another edge, on a dev cluster of three tiers with the
 * paper's links: with feeds current, with rows pending, by the age of the session, and how often it costs nothing.
 * The strategies of SessionStore beside it, in virtual time: benchmark `paper`.
 */
import type { Bench, BenchContext } from "./bench.ts";
import { ages } from "./handoff/age.ts";
import { current } from "./handoff/current.ts";
import { pending } from "./handoff/pending.ts";
import { share } from "./handoff/share.ts";
import type { BenchRecord } from "./record.ts";
import { startTree } from "./tree.ts";

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  const tree = await startTree();
  try {
    records.push(...await current(tree, context));
    records.push(...await pending(tree, context));
    records.push(...await ages(tree, context));
    records.push(...await share(tree, context));
  } finally {
    await tree.stop();
  }
  return records;
}

/** See the file header. */
export const bench: Bench = {
  name: "handoff",
  summary:
    "a session goes on at another edge: feeds current, rows pending, by its age, how often it needs nothing",
  notMeasured: "machines of their own: six sites, their links and the clients share one machine's cores; " +
    "reads after the move, which fetch what the edge does not hold",
  byDefault: true,
  run,
};
