/** The page's way to the cluster, without a browser. */
import { strict as assert } from "node:assert";
import { Cluster } from "./page/live.js";

const SITES = ["http://127.0.0.1:8000", "http://127.0.0.1:8001"];

Deno.test("all streams of the page go on at the other site when theirs is gone", async () => {
  const { fetch } = globalThis;
  Object.assign(globalThis, { location: { href: `${SITES[0]}/_sojourn/dashboard` } });
  let askedMeanwhile = 0;
  const bothAsked = Promise.withResolvers<void>();
  globalThis.fetch = async (input) => {
    if (String(input).startsWith(String(SITES[1]))) return new Response('{"by":"other"}\n');
    if (++askedMeanwhile === 2) bothAsked.resolve();
    await bothAsked.promise;
    throw new TypeError("connection refused");
  };
  try {
    const cluster = new Cluster("a-token");
    cluster.knows(SITES);
    const over = new AbortController();
    const late = setTimeout(() => over.abort(), 60_000); // fails below rather than asking for ever
    const seen = new Set<string>();
    const follow = (path: string) =>
      cluster.follow(path, {
        value: () => {
          seen.add(path);
          if (seen.size === 2) over.abort();
        },
      }, over.signal);
    await Promise.all([follow("/cluster"), follow("/logs")]);
    assert.deepEqual([...seen].sort(), ["/cluster", "/logs"]);
    assert.equal(cluster.base, SITES[1]); // faults go there now
    clearTimeout(late);
  } finally {
    globalThis.fetch = fetch;
    Reflect.deleteProperty(globalThis, "location");
  }
});
