/** `kv.enqueue` and `kv.listenQueue` on one site alone, and on three of which one dies. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "listens");
const link = { rttMs: 12, mbps: 1_000 };
/** A busy machine holds a process up for a second or two: who is taken for dead so has its messages done twice. */
const owners = { suspectMs: 3_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud", owners },
    { id: "east", parent: "cloud", link, owners },
    { id: "west", parent: "cloud", link, owners },
  ],
};

interface Order {
  readonly name: string;
  readonly fails?: number;
  readonly waits?: boolean;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly ends?: string;
}

const post = (cluster: TestCluster, site: string, order: Order, path = "") =>
  ask(`${cluster.url(site)}/listens/${path}`, { method: "POST", body: JSON.stringify(order) });

async function sent(cluster: TestCluster, site: string, order: Order, path = ""): Promise<void> {
  const answer = await post(cluster, site, order, path);
  assert.equal(answer.status, 200, answer.text);
  assert.match(JSON.parse(answer.text), /^[0-9a-f]{20}$/);
}

/** Rows of the app's KV, as the root shows them. */
async function rows(cluster: TestCluster, ...prefix: string[]): Promise<[key: string[], value: unknown][]> {
  const query = new URLSearchParams({ prefix: JSON.stringify(prefix) });
  return JSON.parse((await ask(`${cluster.url("cloud")}/listens/?${query}`)).text);
}

const times = async (cluster: TestCluster, name: string): Promise<number> =>
  (await rows(cluster, "seen", name)).length;

/** Runs `sojourn queues`. */
async function operated(cluster: TestCluster, ...args: string[]): Promise<string> {
  const out: string[] = [], err: string[] = [];
  const shell = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) };
  const code = await runCli(["queues", ...args, "--data", cluster.data], { ...shell, env: () => undefined });
  assert.equal(code, EXIT.done, err.join("\n"));
  return out.join("\n");
}

async function delivered(cluster: TestCluster): Promise<void> {
  await sent(cluster, "cloud", { name: "plain" });
  await sent(cluster, "cloud", { name: "later", options: { delay: 1_000 } });
  assert.equal(await times(cluster, "later"), 0);
  for (const name of ["plain", "later"]) {
    await eventually(`${name} is handled`, async () => await times(cluster, name) > 0);
  }
  assert.deepEqual((await rows(cluster, "seen", "plain")).map(([, value]) => value), [{
    name: "plain",
    fails: 0,
    waits: false,
  }]);
}

async function givenUp(cluster: TestCluster): Promise<void> {
  const backoffSchedule = [10, 20], keysIfUndelivered = [["lost", "a"], ["lost", "b"]];
  await sent(cluster, "cloud", { name: "twice", fails: 2, options: { backoffSchedule, keysIfUndelivered } });
  await sent(cluster, "cloud", { name: "lost", fails: 9, options: { backoffSchedule, keysIfUndelivered } });
  await sent(cluster, "cloud", { name: "kept", fails: 3, options: { backoffSchedule } });
  await eventually("one is written to its keys", async () => (await rows(cluster, "lost")).length === 2);
  const value = { name: "lost", fails: 9, waits: false };
  assert.deepEqual(await rows(cluster, "lost"), [[["lost", "a"], value], [["lost", "b"], value]]);
  await eventually("the other one is given up", async () => await times(cluster, "kept") === 3);
  await eventually("an operator sees it", async () => {
    return (await operated(cluster, "dead", "listens", "kv.queue")).includes("kept");
  });
  assert.match(await operated(cluster, "list", "listens"), /listens\/kv\.queue +handler +0 +0 +0 +1 /);
  assert.match(await operated(cluster, "redrive", "listens", "kv.queue"), /1 message/);
  await eventually("it is handled in the end", async () => await times(cluster, "kept") === 4);
  assert.deepEqual([await times(cluster, "twice"), await times(cluster, "lost")], [3, 3]);
  await operated(cluster, "pause", "listens", "kv.queue");
  await operated(cluster, "resume", "listens", "kv.queue");
}

async function ofSessions(cluster: TestCluster): Promise<void> {
  await sent(
    cluster,
    "cloud",
    { name: "turn", options: { delay: 5, keysIfUndelivered: [["lost"]] } },
    "session",
  );
  const thrown = await post(cluster, "cloud", { name: "never", ends: "thrown" }, "session");
  assert.equal(thrown.status, 502, thrown.text);
  const checked = await post(cluster, "cloud", { name: "never", ends: "checked" }, "session");
  assert.match(checked.text, /not_available/);
  await eventually("what a turn sent is handled", async () => await times(cluster, "turn") === 1);
  assert.equal(await times(cluster, "never"), 0);
}

Deno.test("a site that is alone delivers what it enqueues, and gives up what its listener can't take (message_service.ts MSV2)", async (t) => {
  await using cluster = await startCluster({ topology: "single", apps: [APP] });
  await t.step("values are delivered, and not before their time", () => delivered(cluster));
  await t.step(
    "what can't be delivered is written to its keys, or kept for an operator",
    () => givenUp(cluster),
  );
  await t.step("a stateful session enqueues with its turn, or not at all", () => ofSessions(cluster));
  await t.step("what waits is there after a restart", async () => {
    await sent(cluster, "cloud", { name: "restarted", options: { delay: 2_000 } });
    await cluster.control("stop", "cloud");
    await cluster.control("start", "cloud");
    await cluster.ready("cloud");
    await eventually("it is handled", async () => await times(cluster, "restarted") === 1);
  });
});

/** Values beyond what one site handles at a time, or has ready for that. */
const SLOW = 130;

/** More values than one site handles at a time, and a few that others take meanwhile. */
async function handledElsewhere(cluster: TestCluster): Promise<void> {
  await Promise.all(Array.from({ length: SLOW }, () => sent(cluster, "east", { name: "slow", waits: true })));
  await eventually("east has no place left", async () => {
    return /kv\.queue +handler .* east \d/.test(await operated(cluster, "list", "listens"));
  });
  const quick = Array.from({ length: 5 }, (_, i) => `quick ${i}`);
  for (const name of quick) await sent(cluster, "east", { name });
  for (const name of quick) {
    await eventually(`${name} is handled`, async () => await times(cluster, name) > 0);
  }
  assert.equal(await times(cluster, "slow"), 0, "others wait for these");
  assert.deepEqual(
    (await rows(cluster, "found")).filter(([[, name]]) => name?.startsWith("quick")).map(([, value]) =>
      value
    ),
    quick.map(() => "what its sender wrote"),
  );
  await sent(cluster, "cloud", { name: "let go" });
  await eventually("the slow ones end", async () => await times(cluster, "slow") >= SLOW);
}

Deno.test("a value outlives its site, and is handled where no request came (message_service.ts MSV2)", async () => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology, apps: [APP] });
  try {
    // Sites have just come to know each other.
    await eventually(
      "east has another owner",
      async () => (await post(cluster, "east", { name: "" }, "others")).status === 202,
    );
    await handledElsewhere(cluster);
    const options = { delay: 8_000, backoffSchedule: [10], keysIfUndelivered: [["lost", "east"]] };
    await sent(cluster, "east", { name: "outlives", options });
    await sent(cluster, "east", { name: "fails", fails: 9, options });
    await eventually("east has them in its queue", async () => {
      return /kv\.queue +handler +0 +2 +0 +0 .* east 2/.test(await operated(cluster, "list", "listens"));
    });
    await cluster.control("kill", "east");
    await eventually("another site delivers it", async () => await times(cluster, "outlives") > 0);
    await eventually(
      "another site gives it up",
      async () => (await rows(cluster, "lost")).length === 1,
    );
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
