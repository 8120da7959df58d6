/**
 * Benchmark `store`: SessionStore's figure 5 for this store, on a dev cluster of three tiers with the paper's
 * links: reads of 1 KB held at the edge, the core, the cloud; durable writes, with an owner and without; feed lag; what a parent's children
 * cost a write; token sizes (TARGETS, "Store and handoff").
 */
import type { Bench, BenchContext } from "./bench.ts";
import type { BenchRecord } from "./record.ts";
import { fanout } from "./store/fanout.ts";
import { feedLag } from "./store/lag.ts";
import { owned } from "./store/owned.ts";
import { reads } from "./store/reads.ts";
import { tokenSizes } from "./store/tokens.ts";
import { writes } from "./store/writes.ts";
import { startTree } from "./tree.ts";

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const records = [...tokenSizes(), ...await fanout(context)];
  const tree = await startTree();
  try {
    records.push(...await reads(tree, context));
    records.push(...await writes(tree, context));
    records.push(...await feedLag(tree, context));
    records.push(...await owned(tree, context));
  } finally {
    await tree.stop();
  }
  return records;
}

/** See the file header. */
export const bench: Bench = {
  name: "store",
  summary:
    "1 KB read at edge, core, cloud; durable write; feed lag; an owner; cost of a parent's children; token sizes",
  notMeasured: "machines of their own: six sites, their links and the client share one machine's cores; " +
    "data larger than memory; a parent's 1,000 children are messages, not processes",
  byDefault: true,
  run,
};
