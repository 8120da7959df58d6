/** What an owner costs a write, and how soon it answers for a dead site: in virtual time, on links without jitter. */
import { strict as assert } from "node:assert";
import type { AttachedSession, Replica } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";
import { STAND_IN_AFTER_MS } from "../../../store/model/limits.ts";
import { decodeMessage } from "../../../store/wire/message.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { openReplica } from "../../../store/replica.ts";
import { encodeJson } from "../../../store/members/topology.ts";
import { SimDisk } from "../../sim/disk.ts";
import { START_MS, World } from "../../sim/world.ts";

const COMMIT_MS = 2;
/** One way: between edges, and to the root. */
const PEER_MS = 10;
const ROOT_MS = 50;
/** A turn of the pump here or there. */
const SLACK_MS = 1;

/** A root and three edges; `e1` has owner `e2` where f is 1. */
class Cluster {
  readonly world = new World();
  readonly #replicas = new Map<SiteId, Replica>();
  /** Messages to owners that bring them something, and all. */
  wards = 0;
  said = 0;
  /** A site that is killed refuses dials, where it is silent else. */
  refuses = false;

  async start(f: number): Promise<void> {
    await this.#open("root", null, 0);
    for (const site of ["e1", "e2", "e3"]) await this.#open(site, "root", site === "e1" ? f : 0);
    for (const site of ["e1", "e2", "e3"]) {
      this.of("root").connected(site, "child");
      this.of(site).connected("root", "parent");
    }
    const isUp = () =>
      ["e1", "e2", "e3"].every((site) => this.of(site).status().replica !== 0) &&
      this.of("e1").status().wards.owners.length === f;
    assert.ok(await this.world.run(60_000, isUp), "the owners are in effect");
    await this.world.run(this.world.nowMs + 1_000);
  }

  of(site: SiteId): Replica {
    const replica = this.#replicas.get(site);
    if (replica === undefined) throw new Error(`no site ${site}`);
    return replica;
  }

  kill(site: SiteId): void {
    this.#replicas.delete(site);
  }

  async #open(site: SiteId, parent: SiteId | null, f: number): Promise<void> {
    const { world } = this;
    const clock = {
      nowMs: () => START_MS + world.nowMs,
      steadyMs: () => START_MS + world.nowMs,
      after: (ms: number, callback: () => void) => world.after(ms, callback),
      turn: () => world.sleep(0),
    };
    const commitDelayMs = [COMMIT_MS, COMMIT_MS] as const;
    const replica = await openReplica({
      site,
      parent,
      tier: parent === null ? "root" : "edge",
      url: "",
      linkAddress: "",
      capacityBytes: 1e9,
      owners: { ...NO_OWNERS, f, sites: ["e2"], nearMs: 0 },
    }, {
      clock,
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new SimDisk({ clock, random: () => 0.5, commitDelayMs, earlyChance: 0 }),
      network: { send: (to, message) => this.#send(site, to, message) },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    });
    this.#replicas.set(site, replica);
  }

  #send(from: SiteId, to: SiteId, message: Uint8Array): Promise<void> {
    const ms = from === "root" || to === "root" ? ROOT_MS : PEER_MS;
    const sent = decodeMessage(message);
    if (sent.kind === "ward") this.said++;
    if (sent.kind === "ward" && sent.rows.length > 0) this.wards++;
    this.world.after(ms, () => {
      const [sender, receiver] = [this.#replicas.get(from), this.#replicas.get(to)];
      if (sender !== undefined && receiver !== undefined) receiver.receive(from, message);
      else if (this.refuses) sender?.unreachable(to);
    });
    return Promise.resolve();
  }

  /** The virtual time that something takes. */
  async timeOf<T>(body: () => Promise<T>): Promise<{ ms: number; result: T }> {
    const fromMs = this.world.nowMs;
    let settled: { result: T } | { error: unknown } | null = null;
    body().then((result) => settled = { result }, (error) => settled = { error });
    await this.world.run(fromMs + 10_000, () => settled !== null);
    const outcome = settled as { result: T } | { error: unknown } | null;
    assert.ok(outcome !== null, "it never ended");
    if ("error" in outcome) throw outcome.error;
    return { ms: this.world.nowMs - fromMs, result: outcome.result };
  }
}

async function write(replica: Replica, id: number): Promise<AttachedSession> {
  const session = await replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["a", "cost", id]), value: encodeJson(id) }]);
  await session.durable();
  return session;
}

Deno.test("an owner costs a write one round trip and its commit, and nothing with f = 0", async () => {
  const alone = new Cluster(), owned = new Cluster();
  await alone.start(0);
  await owned.start(1);
  const without = (await alone.timeOf(() => write(alone.of("e1"), 1))).ms;
  const withOwner = (await owned.timeOf(() => write(owned.of("e1"), 1))).ms;
  assert.ok(without <= COMMIT_MS + SLACK_MS, `f = 0: ${without} ms`);
  assert.ok(withOwner >= without + 2 * PEER_MS, `an answer left before the owner had it: ${withOwner} ms`);
  const most = 2 * COMMIT_MS + 2 * PEER_MS + SLACK_MS;
  assert.ok(withOwner <= most, `f = 1: ${withOwner} ms, at most ${most}`);
});

Deno.test("writes that come together share the trip to their owner", async () => {
  const cluster = new Cluster();
  await cluster.start(1);
  cluster.wards = 0;
  const all = () => Promise.all(Array.from({ length: 100 }, (_, id) => write(cluster.of("e1"), id)));
  const { ms } = await cluster.timeOf(all);
  assert.ok(ms <= 3 * COMMIT_MS + 2 * PEER_MS + SLACK_MS, `${ms} ms for all of them`);
  assert.ok(cluster.wards <= 2, `${cluster.wards} messages for 100 writes`);
});

Deno.test("an owner is told once after each burst of writes what the root has of them, and then nothing", async () => {
  const cluster = new Cluster(), { world } = cluster;
  await cluster.start(1);
  const held = () => cluster.of("e2").status().wards.heldBytes;
  cluster.wards = cluster.said = 0;
  for (let id = 0; id < 10; id++) {
    await cluster.timeOf(() => write(cluster.of("e1"), id));
    assert.ok(held() > 0);
    await world.run(world.nowMs + 1_000);
    assert.equal(held(), 0);
  }
  assert.deepEqual([cluster.wards, cluster.said], [10, 20]);
  await world.run(world.nowMs + 60_000);
  assert.equal(cluster.said, 20);
});

Deno.test("an owner answers for a killed site within a tenth of a second and two round trips", async () => {
  const cluster = new Cluster();
  await cluster.start(1);
  const { result: session } = await cluster.timeOf(() => write(cluster.of("e1"), 7));
  const token = session.token(false);
  cluster.kill("e1");
  const arrive = async () => await cluster.of("e3").attach(token);
  const { ms, result } = await cluster.timeOf(arrive);
  assert.equal(result.how, "carry");
  assert.ok(ms <= STAND_IN_AFTER_MS + 4 * PEER_MS + SLACK_MS, `${ms} ms`);
});

Deno.test("an owner is asked at once where the dial of a killed site is refused", async () => {
  const cluster = new Cluster();
  cluster.refuses = true;
  await cluster.start(1);
  const { result: session } = await cluster.timeOf(() => write(cluster.of("e1"), 7));
  const token = session.token(false);
  cluster.kill("e1");
  const { ms, result } = await cluster.timeOf(async () => await cluster.of("e3").attach(token));
  assert.equal(result.how, "carry");
  assert.ok(ms <= 3 * PEER_MS + SLACK_MS, `${ms} ms for the dial, the question and its answer`);
});
