/** `sojourn queues` on a cluster of three sites: what it shows, what it does, and what it says of a site that is down. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "pulled");
const link = { rttMs: 12, mbps: 1_000 };
const TOPOLOGY = {
  sites: [{ id: "cloud" }, { id: "east", parent: "cloud", link }, { id: "west", parent: "cloud", link }],
};

interface Listed {
  readonly queue: string;
  readonly consumer: string | null;
  readonly paused: boolean;
  readonly ready: number;
  readonly delayed: number;
  readonly lent: number;
  readonly dead: number;
  readonly oldestMs: number | null;
  readonly sites: readonly { readonly site: string }[];
}

class Operator {
  constructor(readonly cluster: TestCluster) {}

  async run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const out: string[] = [], err: string[] = [], { cluster } = this;
    const env: Record<string, string> = {
      SOJOURN_URL: cluster.url("west"),
      SOJOURN_TOKEN: cluster.adminToken,
    };
    const shell = {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      env: (name: string) => env[name],
    };
    return { code: await runCli(["queues", ...args], shell), out: out.join("\n"), err: err.join("\n") };
  }

  async done(...args: string[]): Promise<string> {
    const { code, out, err } = await this.run(...args);
    assert.equal(code, EXIT.done, `${args.join(" ")}: ${err}`);
    return out;
  }

  async listed(queue = "calls"): Promise<Listed | undefined> {
    return (JSON.parse(await this.done("list", "pulled", "--json")) as Listed[]).find((one) =>
      one.queue === queue
    );
  }

  async counts(queue?: string) {
    const { ready, delayed, lent, dead } = await this.listed(queue) ?? {};
    return { ready, delayed, lent, dead };
  }

  async post(site: string, path: string, body: unknown): Promise<Record<string, unknown>> {
    const url = `${this.cluster.url(site)}/_sojourn/queues/pulled/${path}`;
    return JSON.parse((await ask(url, { method: "POST", body: JSON.stringify(body) })).text);
  }

  /** Pulls at west until it has so many. */
  async pulled(count: number): Promise<{ id: string; lease: string; attempts: number }[]> {
    const all: { id: string; lease: string; attempts: number }[] = [];
    await eventually(`${count} are pulled`, async () => {
      all.push(...(await this.post("west", "calls/pull", { waitMs: 500 }))["messages"] as typeof all);
      return all.length >= count;
    });
    return all;
  }

  async sent(...ids: string[]): Promise<void> {
    const messages = ids.map((id) => ({ id, body: { name: id } }));
    await eventually(
      "they are sent",
      async () => "ids" in await this.post("east", "calls/batch", { messages }),
    );
  }

  async settled(verb: string, messages: readonly { lease: string }[]): Promise<void> {
    const told = await this.post("west", `calls/${verb}`, { leases: messages.map(({ lease }) => lease) });
    assert.deepEqual(told["results"], messages.map(() => "done"));
  }
}

const NONE = { ready: 0, delayed: 0, lent: 0, dead: 0 };

async function shown(operator: Operator): Promise<void> {
  const empty = await operator.listed("own");
  assert.deepEqual([empty?.consumer, empty?.oldestMs, empty?.sites], ["handler", null, []]);
  await operator.sent("a", "b", "c");
  await operator.post("east", "calls/batch", { messages: [{ body: 1, delayMs: 600_000 }] });
  const calls = await operator.listed();
  assert.deepEqual([calls?.consumer, calls?.paused], ["pull", false]);
  assert.deepEqual(await operator.counts(), { ...NONE, ready: 3, delayed: 1 });
  assert.deepEqual(calls?.sites.map(({ site }) => site), ["east"]);
  assert.ok((calls?.oldestMs ?? -1) >= 0);
  const lent = await operator.pulled(3);
  assert.deepEqual(await operator.counts(), { ...NONE, delayed: 1, lent: 3 });
  await operator.settled("reject", lent);
  assert.deepEqual(await operator.counts(), { ...NONE, delayed: 1, dead: 3 });
  const metrics = await (await fetch(`${operator.cluster.url("east")}/_sojourn/metrics`)).text();
  const of = 'messaging_destination_name="pulled/calls"';
  for (
    const [name, labels, value] of [
      ["sojourn_messaging_client_sent_messages_total", 'messaging_operation_name="send"', /^[4-9]$/],
      [
        "sojourn_messaging_client_operation_duration_seconds_count",
        'messaging_operation_name="send"',
        /^[2-9]$/,
      ],
      ["sojourn_queue_messages", 'state="dead"', /^3$/],
      ["sojourn_queue_events_total", 'event="died"', /^3$/],
    ] as const
  ) {
    const line = metrics.split("\n").find((one) => {
      return one.startsWith(name) && one.includes(of) && one.includes(labels) && !one.includes("error_type");
    });
    assert.match(line?.split(" ").at(-1) ?? "", value, `${name} ${labels}: ${line}`);
  }
  const table = await operator.done();
  assert.match(table, /^queue +consumer +ready +delayed +in flight +dead +oldest +at$/m);
  assert.match(table, /^pulled\/calls +pull +0 +1 +0 +3 +- +east 4$/m);
  const unknown = await operator.run("list", "nothing");
  assert.deepEqual([unknown.code, unknown.err.startsWith("app_unknown")], [EXIT.failed, true]);
}

async function dealtWith(operator: Operator): Promise<void> {
  const lines = (await operator.done("dead", "pulled", "calls", "--json")).split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.deepEqual(lines.map(({ id }) => id).sort(), ["a", "b", "c"]);
  for (const { site, cause, attempts, owners, body, id } of lines) {
    assert.deepEqual([site, cause, attempts, owners[0], body.name], ["east", "rejected", 1, "east", id]);
  }
  const pages = await operator.run("dead", "pulled", "calls", "--limit", "2");
  assert.equal(pages.out.split("\n").length, 4, "two lines each");
  assert.match(pages.err, /there are more/);
  assert.match(await operator.done("redrive", "pulled", "calls", "b", "no such"), /^1 message of/);
  const [again] = await operator.pulled(1);
  assert.deepEqual([again?.id, again?.attempts], ["b", 1], "as if it had never been tried");
  await operator.settled("ack", again === undefined ? [] : [again]);
  const asked = await operator.run("purge", "pulled", "calls", "a");
  assert.deepEqual([asked.code, (await operator.counts()).dead], [EXIT.failed, 2], "nothing without --yes");
  assert.match(await operator.done("purge", "pulled", "calls", "a", "--yes"), /^removed 1 message of/);
  assert.match(await operator.done("redrive", "pulled", "calls"), /^1 message of/);
  assert.deepEqual(await operator.counts(), { ...NONE, ready: 1, delayed: 1 });
  assert.match(await operator.done("purge", "pulled", "calls", "--all", "--yes"), /is purged$/);
  await eventually("all that was sent is gone", async () => {
    return JSON.stringify(await operator.counts()) === JSON.stringify(NONE);
  });
  await operator.sent("after");
  await operator.settled("ack", await operator.pulled(1));
  assert.equal((await operator.run("purge", "pulled", "none", "--all", "--yes")).code, EXIT.failed);
}

async function paused(operator: Operator): Promise<void> {
  assert.match(await operator.done("pause", "pulled", "calls"), /gives out nothing$/);
  await operator.sent("kept");
  const during = await operator.post("west", "calls/pull", { waitMs: 700 });
  assert.deepEqual(during["messages"], []);
  assert.equal((await operator.listed())?.paused, true);
  assert.deepEqual(JSON.parse(await operator.done("pause", "pulled", "calls", "--json")).changed, false);
  assert.match(await operator.done("resume", "pulled", "calls"), /goes on$/);
  const [kept] = await operator.pulled(1);
  assert.deepEqual([kept?.id, kept?.attempts], ["kept", 1]);
  await operator.settled("ack", kept === undefined ? [] : [kept]);
}

async function withoutSite(operator: Operator): Promise<void> {
  await operator.sent("taken over");
  await operator.cluster.control("kill", "east");
  const { code, out, err } = await operator.run("list", "pulled", "--json");
  assert.equal(code, EXIT.partly);
  assert.match(err, /^east did not answer: /m);
  assert.ok(Array.isArray(JSON.parse(out)), "what the others have is shown");
  const redriven = await operator.run("redrive", "pulled", "calls", "--json");
  assert.equal(redriven.code, EXIT.partly);
  assert.deepEqual(JSON.parse(redriven.out).missing.map(({ site }: { site: string }) => site), ["east"]);
}

Deno.test("operators see what waits in queues, and look after messages that were given up", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology, apps: [APP] });
  const operator = new Operator(cluster);
  try {
    await t.step("what waits is counted, over all sites", () => shown(operator));
    await t.step("what was given up is shown, comes again, or is removed", () => dealtWith(operator));
    await t.step("a queue that is paused keeps what is sent to it", () => paused(operator));
    await t.step(
      "a site that can't be asked is named (runtime/admin/queues.ts QA1)",
      () => withoutSite(operator),
    );
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
