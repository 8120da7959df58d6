/**
 * The walk of examples/editor/README.md: a bus ride over three edges, a step at each, somebody who watches.
 *
 * R1  Each step stands behind all those before it, at whichever edge it is made.
 * R2  Undoing at the next edge takes back the last step, not an older one.
 * R3  An edge that dies on the way is passed by; the ride loses nothing that it has shown elsewhere.
 * R4  Who watches sees the document as the rider does, in the end.
 */
import { strict as assert } from "node:assert";
import { HeaderClient } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

interface View {
  readonly steps: readonly { readonly number: number; readonly tool: string; readonly site: string }[];
  readonly look: { readonly filter: string; readonly transform: string };
}

const EDGES = ["edge-1", "edge-3", "edge-2", "edge-3"];
const TOOLS = ["warm", "crop", "contrast", "stabilise", "mirror", "saturate", "brighten", "cool"];

class Rider extends HeaderClient {
  /** Steps that this session made and did not undo. */
  readonly made: string[] = [];

  constructor(readonly cluster: TestCluster) {
    super();
  }

  async #post(site: string, path: string, body: object): Promise<View> {
    const answer = await this.fetch(`${this.cluster.url(site)}/editor/ride${path}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 201, `${site}${path}: ${answer.text}`);
    return JSON.parse(answer.text) as View;
  }

  /** R1 */
  async step(site: string, tool: string): Promise<void> {
    const { steps } = await this.#post(site, "/steps", { tool });
    this.made.push(tool);
    assert.deepEqual(steps.map((step) => step.tool), this.made, `a step at ${site} stands behind all others`);
    assert.deepEqual(steps.map((step) => step.number), this.made.map((_, i) => i + 1));
    assert.equal(steps.at(-1)?.site, site);
  }

  /** R2 */
  async undo(site: string): Promise<void> {
    const { steps } = await this.#post(site, "/undo", {});
    this.made.pop();
    assert.deepEqual(steps.map((step) => step.tool), this.made, `undone at ${site}`);
  }

  async look(site: string): Promise<View> {
    const answer = await this.fetch(`${this.cluster.url(site)}/editor/ride/steps`);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as View;
  }
}

/** Somebody with a session of their own, who keeps what the stream said last. */
async function watch(cluster: TestCluster, site: string) {
  const gone = new AbortController();
  const answer = await fetch(`${cluster.url(site)}/editor/ride/events`, { signal: gone.signal });
  assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
  let last: View | null = null;
  const reading = async () => {
    let text = "";
    for await (const part of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const events = (text + part).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) last = JSON.parse(data) as View;
      }
    }
  };
  const ended = reading().catch(() => {}); // it was aborted
  return {
    last: () => last,
    stop: async () => {
      gone.abort();
      await ended;
    },
  };
}

/** Walks the example over a cluster that runs it. */
export async function walkEditor(cluster: TestCluster): Promise<void> {
  const page = await fetch(`${cluster.url("edge-1")}/editor/ride`);
  assert.match(await page.text(), /Take the bus/);
  const watcher = await watch(cluster, "edge-2");
  try {
    const rider = new Rider(cluster);
    for (const site of new Set(EDGES)) await rider.look(site); // each has the document, without a step
    for (const [i, tool] of TOOLS.entries()) await rider.step(EDGES[i % EDGES.length] ?? "", tool);
    await rider.undo("edge-1");
    await rider.step("edge-2", "mono");
    await rider.look("edge-3"); // what was shown here does not depend on edge-2 alone
    await cluster.control("kill", "edge-2");
    const beside = await watch(cluster, "edge-3");
    await rider.step("edge-3", "soften"); // R3
    await rider.step("edge-1", "crop");
    const seen = await rider.look("edge-3");
    assert.match(seen.look.filter, /grayscale.*blur/, "the order of the steps is what one sees");
    await eventually("who watches at edge-3 sees it all", () => { // R4
      assert.deepEqual(beside.last(), { steps: seen.steps, look: seen.look });
      return Promise.resolve(true);
    });
    await beside.stop();
    await cluster.control("start", "edge-2");
    await cluster.ready("edge-2");
    assert.deepEqual((await rider.look("edge-2")).steps, seen.steps);
    assert((watcher.last()?.steps.length ?? 0) > 0, "who watched at edge-2 saw steps while it lived");
  } finally {
    await watcher.stop();
  }
}
