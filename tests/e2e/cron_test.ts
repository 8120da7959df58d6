/** Cron on a running site: runs by command, and what is made up after the site was down. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { openReplica } from "../../store/replica.ts";
import { encodeJob, jobKey } from "../../runtime/cron/cron_rows.ts";
import { newJob } from "../../runtime/cron/job.ts";
import { SystemClock, SystemRandom } from "../../runtime/site/system_ports.ts";
import { openDenoKv } from "../../runtime/storage/denokv.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** Due once a year: nothing of it happens by itself while the test runs, but for a minute in a year. */
const YEARLY = "0 0 1 1 *";

const APP = `
export default {
  cron: { missed: "${YEARLY}", cut: "${YEARLY}", held: "${YEARLY}", fails: "${YEARLY}", minutely: "* * * * *" },
  fetch: async (request, env) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/go") await env.kv.set(["go"], true);
    return Response.json((await env.kv.get(["runs"])).value ?? []);
  },
  async scheduled(event, env, ctx) {
    if (event.name === "minutely") return;
    if (event.name === "fails") throw new Error("on purpose");
    if (event.name === "held") {
      while ((await env.kv.get(["go"])).value !== true) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    ctx.waitUntil(noteRun(env.kv, [event.name, event.scheduledTime]));
  },
};
/** Jobs run beside each other. */
async function noteRun(kv, run) {
  for (let ok = false; !ok;) {
    const { key, value, versionstamp } = await kv.get(["runs"]);
    ({ ok } = await kv.atomic().check({ key, versionstamp }).set(key, [...(value ?? []), run]).commit());
  }
}`;

async function cron(cluster: TestCluster, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", join(ROOT, "runtime", "main.ts"), "cron", ...args],
      ...["--data", cluster.data],
    ],
    stdin: "null",
  }).output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

type Listed = {
  name: string;
  nextMs: number;
  last: { ok: boolean; manual: boolean; attempts: number } | null;
};

async function listed(cluster: TestCluster): Promise<Record<string, Listed>> {
  const { code, out, err } = await cron(cluster, "clock", "--json");
  assert.equal(code, 0, err);
  return Object.fromEntries((JSON.parse(out) as Listed[]).map((job) => [job.name, job]));
}

const runs = async (cluster: TestCluster): Promise<[string, number][]> =>
  JSON.parse((await ask(`${cluster.url("cloud")}/clock/`)).text);

async function byCommand(cluster: TestCluster) {
  const before = await listed(cluster);
  assert.deepEqual(Object.keys(before), ["cut", "fails", "held", "minutely", "missed"]);
  assert.equal(new Date(before.missed?.nextMs ?? 0).getUTCFullYear(), new Date().getUTCFullYear() + 1);
  assert((before.minutely?.nextMs ?? Infinity) <= Date.now() + 61_000);
  const ran = await cron(cluster, "clock", "run", "minutely");
  assert.equal(ran.code, 0, ran.err);
  assert.match(ran.out, /^minutely of clock ran in \d+ ms\n$/);
  const failed = await cron(cluster, "clock", "run", "fails", "--json");
  assert.equal(failed.code, 1);
  assert.deepEqual(JSON.parse(failed.out).error, { code: "app_error", message: "on purpose" });
  assert.match(cluster.log(), /on purpose/);
  assert.equal((await cron(cluster, "clock", "run", "nothing")).code, 1);
  const after = await listed(cluster);
  assert.deepEqual([after.fails?.last?.ok, after.fails?.last?.manual], [false, true]);
  assert.equal(after.fails?.nextMs, before.fails?.nextMs, "what is due stays");
}

async function noOverlap(cluster: TestCluster) {
  // Whichever comes first runs until it is let go: the first to end is the other.
  const both = [cron(cluster, "clock", "run", "held"), cron(cluster, "clock", "run", "held")];
  const refused = await Promise.race(both);
  assert.equal(refused.code, 1, refused.out);
  assert.match(refused.err, /^cron_running: /);
  await ask(`${cluster.url("cloud")}/clock/go`);
  assert.deepEqual((await Promise.all(both)).map(({ code }) => code).sort(), [0, 1]);
  assert.deepEqual((await runs(cluster)).map(([name]) => name), ["held"]);
}

/** Rows as a root that was down over the new year left them: one job was missed, another was cut off. */
async function plant(data: string, dueMs: number) {
  const storage = await openDenoKv({ folder: join(data, "sites", "cloud", "data", "store") });
  const config = {
    site: "cloud",
    parent: null,
    tier: "root",
    url: "",
    linkAddress: "",
    capacityBytes: 1 << 30,
  };
  const replica = await openReplica(config, {
    clock: new SystemClock(),
    random: new SystemRandom(),
    storage,
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  await replica.ready;
  const job = { ...newJob(YEARLY, dueMs - 1), dueMs };
  const cut = { ...job, running: true, attempts: 1, startedMs: dueMs };
  await replica.system.write([
    { kind: "set", key: jobKey("clock", "missed"), value: encodeJob(job) },
    { kind: "set", key: jobKey("clock", "cut"), value: encodeJob(cut) },
  ]);
  await replica.system.durable();
  await replica.close();
  await storage.close();
}

async function madeUp(cluster: TestCluster, dueMs: number) {
  await eventually("both were made up", async () => (await runs(cluster)).length === 3);
  const made = (await runs(cluster)).slice(1).sort(([a], [b]) => a < b ? -1 : 1);
  assert.deepEqual(made, [["cut", dueMs], ["missed", dueMs]]);
  await eventually("the rows say so", async () => {
    const { missed, cut } = await listed(cluster);
    assert.deepEqual([missed?.last?.ok, missed?.last?.attempts], [true, 1]);
    assert.deepEqual([cut?.last?.ok, cut?.last?.attempts], [true, 2]);
    return true;
  });
  assert.match(cluster.log(), /cron_cut_off/);
}

Deno.test("cron jobs run by command and once after they were missed, and never twice at once", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-cron-" });
  const data = join(folder, "data");
  const app = join(folder, "clock");
  const start = () => startCluster({ apps: [app], topology: "single", data });
  await Deno.mkdir(app);
  await Deno.writeTextFile(join(app, "app.ts"), APP);
  const dueMs = Date.UTC(new Date().getUTCFullYear(), 0, 1);
  try {
    {
      await using cluster = await start();
      await t.step("by command", () => byCommand(cluster));
      await t.step("not while it runs", () => noOverlap(cluster));
    }
    await plant(data, dueMs);
    {
      await using cluster = await start();
      await t.step("what was missed, and what was cut off", () => madeUp(cluster, dueMs));
    }
    await using cluster = await start();
    await t.step("once", async () => {
      assert.equal((await listed(cluster)).missed?.last?.ok, true);
      assert.equal((await runs(cluster)).length, 3);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
