/** Messages that stateful sessions send to queues: with their turn or not at all, and once, whoever has died. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "outbox");
const link = { rttMs: 12, mbps: 1_000 };
/** A busy machine holds a process up for a second or two: who is taken for dead so has its messages done twice. */
const owners = { suspectMs: 3_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud", f: 1, owners },
    { id: "east", parent: "cloud", link, f: 1, owners },
    { id: "west", parent: "cloud", link, f: 1, owners },
  ],
};

interface Sending {
  readonly queue?: string;
  readonly delayMs?: number;
  readonly fails?: boolean;
}

const send = (
  cluster: TestCluster,
  at: { readonly site: string; readonly session: string },
  names: readonly string[],
  { queue = "jobs", delayMs = 0, fails = false }: Sending = {},
) =>
  ask(`${cluster.url(at.site)}/outbox/?session=${at.session}`, {
    method: "POST",
    body: JSON.stringify({ queue, names, delayMs, fails }),
  });

interface Handled {
  readonly name: string;
  readonly id: string;
}

async function handled(cluster: TestCluster, name: RegExp): Promise<Handled[]> {
  const all = JSON.parse((await ask(`${cluster.url("cloud")}/outbox/`)).text) as Handled[];
  return all.filter((one) => name.test(one.name));
}

const namesOf = async (cluster: TestCluster, name: RegExp): Promise<string[]> =>
  (await handled(cluster, name)).map(({ name }) => name).sort();

const isHandled = (cluster: TestCluster, name: string): Promise<void> =>
  eventually(`${name} is handled`, async () => (await namesOf(cluster, new RegExp(`^${name}$`))).length > 0);

/** What `sojourn sessions show` says of a session. */
async function show(cluster: TestCluster, session: string): Promise<string> {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  await runCli(["sessions", "show", "outbox", "sender", session, "--data", cluster.data], {
    ...{ out: say, err: say },
    env: () => undefined,
  });
  return lines.join("\n");
}

async function sentWithTurns(cluster: TestCluster): Promise<void> {
  const at = { site: "east", session: "turns" };
  // Sites have just come to know each other.
  await eventually("east has another owner", async () => (await send(cluster, at, ["first"])).status === 200);
  const failed = await send(cluster, at, ["never 1", "never 2"], { fails: true });
  assert.equal(failed.status, 502, failed.text);
  const answer = await send(cluster, at, ["a 1", "a 2", "a 3"]);
  assert.equal(answer.status, 200, answer.text);
  for (const name of ["a 1", "a 2", "a 3"]) await isHandled(cluster, name);
  assert.deepEqual(await namesOf(cluster, /^a /), ["a 1", "a 2", "a 3"], "each once");
  assert.deepEqual(await namesOf(cluster, /^never/), []);
  const ids = (await handled(cluster, /^a /)).map(({ id }) => id);
  assert.ok(ids.every((id) => /^~[\w-]{24}$/.test(id)) && new Set(ids).size === 3, `${ids}`);
}

async function waitsForRoom(cluster: TestCluster): Promise<void> {
  const filling = await send(cluster, { site: "west", session: "filler" }, ["fills"], {
    queue: "tiny",
    delayMs: 4_000,
  });
  assert.equal(filling.status, 200, filling.text);
  const waiting = send(cluster, { site: "west", session: "waiter" }, ["waits"], { queue: "tiny" });
  await eventually(
    "it says why it waits",
    () =>
      Promise.resolve(/of a stateful session to queues wait: the queue outbox\/tiny has/.test(cluster.log())),
  );
  const shown = await show(cluster, "waiter");
  assert.match(shown, /^unsent +1 of its messages to queues: the queue outbox\/tiny has 1 messages/m, shown);
  assert.deepEqual(await namesOf(cluster, /^waits$/), []);
  const answer = await waiting;
  assert.equal(answer.status, 200, answer.text);
  await isHandled(cluster, "waits");
  assert.deepEqual(await namesOf(cluster, /^(fills|waits)$/), ["fills", "waits"]);
  assert.doesNotMatch(await show(cluster, "waiter"), /unsent/);
}

const atomic = async (cluster: TestCluster, site: string, asked: unknown, method = "PUT"): Promise<string> =>
  (await ask(`${cluster.url(site)}/outbox/`, { method, body: JSON.stringify(asked) })).text;

async function withRows(cluster: TestCluster): Promise<void> {
  assert.equal(await atomic(cluster, "west", { queue: "jobs", name: "with row" }), "true");
  assert.equal(await atomic(cluster, "west", { queue: "jobs", name: "refused", checks: true }), "false");
  assert.equal(await atomic(cluster, "west", { name: "with table" }, "DELETE"), "true");
  assert.match(
    await atomic(cluster, "west", { queue: "nowhere", name: "x" }),
    /which the app does not declare/,
  );
  for (const name of ["with row", "with table"]) await isHandled(cluster, name);
  assert.deepEqual(await namesOf(cluster, /^(with|refused|row)/), [
    "row of with table",
    "with row",
    "with table",
  ]);
}

async function outlivesItsProcess(cluster: TestCluster): Promise<void> {
  const filling = await send(cluster, { site: "west", session: "filler 3" }, ["fills again"], {
    queue: "tiny",
    delayMs: 6_000,
  });
  assert.equal(filling.status, 200, filling.text);
  assert.equal(await atomic(cluster, "west", { queue: "tiny", name: "left" }), "true");
  await eventually(
    "it waits for room",
    () => Promise.resolve(/outbox_waits why="the queue outbox\/tiny has/.test(cluster.log())),
  );
  await cluster.control("kill", "west");
  await cluster.control("start", "west");
  await cluster.ready("west");
  await isHandled(cluster, "left");
  assert.equal(new Set((await handled(cluster, /^left$/)).map(({ id }) => id)).size, 1);
}

async function outlivesItsHome(cluster: TestCluster): Promise<void> {
  const at = { site: "east", session: "heir" };
  const filling = await send(cluster, { site: "east", session: "filler 2" }, ["fills east"], {
    queue: "tiny",
    delayMs: 12_000,
  });
  assert.equal(filling.status, 200, filling.text);
  assert.equal((await send(cluster, at, ["before"])).text, "1");
  const waits = () => cluster.log().split("of a stateful session to queues wait").length;
  const before = waits();
  const unheard = send(cluster, at, ["survives"], { queue: "tiny" }).catch(() => null);
  await eventually("it waits for room", () => Promise.resolve(waits() > before));
  await cluster.control("kill", "east");
  await unheard;
  await eventually("another site goes on with the session", async () => {
    return (await ask(`${cluster.url("west")}/outbox/?session=heir`)).text === "2";
  });
  await isHandled(cluster, "survives");
  // A handler may fail for want of owners, and be given the message again; another message it is not.
  for (const name of [/^survives$/, /^before$/]) {
    assert.equal(new Set((await handled(cluster, name)).map(({ id }) => id)).size, 1, `${name}`);
  }
}

Deno.test("messages of stateful sessions are sent with their turns, wait for room, and outlive their session's home", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology, apps: [APP] });
  try {
    await t.step(
      "a handler that throws sends nothing, and any other all of it",
      () => sentWithTurns(cluster),
    );
    await t.step("a full queue holds the answer up, and nothing is lost", () => waitsForRoom(cluster));
    await t.step("what is sent in one step with rows is sent if they are written", () => withRows(cluster));
    await t.step("and by the next process, where one dies with it", () => outlivesItsProcess(cluster));
    await t.step("who takes a session over sends what was not stored", () => outlivesItsHome(cluster));
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
