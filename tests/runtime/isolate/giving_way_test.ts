/** An app that computes much gives way, through all the isolates that end meanwhile, and its neighbour does not. */
import assert from "node:assert/strict";
import { type IsolateApp, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { CORES_FREE, LEVEL_MS_MAX } from "../../../runtime/isolate/app_cores.ts";
import { QUEUES_BYTES_MAX, SiteQueues } from "../../../runtime/isolate/app_queues.ts";
import { appOf, callOf } from "./apps.ts";

const APP = `
  export default {
    fetch(request) {
      if (new URL(request.url).pathname === "/loop") for (;;);
      return new Response("done");
    },
  };`;
/** Several bursts, of loops that are ended after 200 ms each. */
const LOOPS_MAX = 40;
/** Of /proc/PID/stat, by proc(5). */
const NICE = 19;

function nicenessOf(pid: number): number {
  const line = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[NICE - 3]);
}

Deno.test({
  name: "an app whose isolates loop one after the other gives way, and its neighbour does not (CW1, CW2)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    // Nothing of what the loops use runs off, however long the machine takes for them.
    let nowMs = 0;
    const queues = new SiteQueues(QUEUES_BYTES_MAX, {}, () => nowMs), pool = new IsolatePool({ queues });
    const greedy: IsolateApp = appOf(APP, { name: "greedy", limits: { cpuMs: 200, isolatesMax: 1 } });
    const steady: IsolateApp = appOf(APP, { name: "steady" });
    const pidOf = (app: IsolateApp) =>
      pool.status().apps.find((each) => each.app === app.app)?.isolates[0]?.pid ?? 0;
    try {
      assert.equal((await pool.call(steady, callOf("/"))).kind, "response");
      nowMs = LEVEL_MS_MAX / CORES_FREE; // what a start took has run off
      for (let i = 0; i < LOOPS_MAX && !queues.of("greedy").cores.givesWay; i++) {
        assert.equal((await pool.call(greedy, callOf("/loop"))).kind, "error");
      }
      assert.equal((await pool.call(greedy, callOf("/"))).kind, "response");
      assert.ok(queues.of("greedy").cores.givesWay);
      assert.equal(nicenessOf(pidOf(greedy)) - nicenessOf(Deno.pid), 10);
      assert.ok(!queues.of("steady").cores.givesWay);
      assert.equal(nicenessOf(pidOf(steady)), nicenessOf(Deno.pid));
    } finally {
      await pool.close();
    }
  },
});
