import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { OwnersError } from "../../store/owners/choose.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { SiteReplica } from "../../store/replica.ts";
import { Core } from "../../store/core.ts";
import { encodeMessage } from "../../store/message.ts";
import type { SiteId } from "../../store/ports.ts";
import { type Endpoint, SimNetwork } from "../sim/network.ts";
import { Draws } from "../sim/random.ts";
import { ProcessClock, World } from "../sim/world.ts";

const TIMES = { beatMs: 50, suspectMs: 250, deadMs: 1_200 };
const PARENTS: Readonly<Record<SiteId, SiteId | null>> = { root: null, e1: "root", e2: "root" };

/** A root and two edges, as replicas in virtual time. */
class Tree {
  readonly world = new World();
  readonly draws = new Draws("site owners");
  readonly network: SimNetwork;
  readonly replicas = new Map<SiteId, SiteReplica>();
  readonly endpoints = new Map<SiteId, Endpoint>();
  readonly notes: string[] = [];

  constructor() {
    this.network = new SimNetwork({
      world: this.world,
      draws: this.draws.fork("network"),
      parentOf: (site) => PARENTS[site] ?? null,
      quality: () => ({ delayMs: [5, 6], lossChance: 0, bytesPerMs: Infinity }),
      window: 64,
      noticeMs: [0, 10],
      lateChance: 0,
    });
  }

  async start(site: SiteId, area: string | null): Promise<SiteReplica> {
    const clock = new ProcessClock(this.world, { skewMs: 0, drift: 0 });
    const random = this.draws.fork(site);
    const holder: { endpoint: Endpoint | null } = { endpoint: null };
    const owners = { ...NO_OWNERS, ...TIMES, f: 1, nearMs: 0, area };
    const replica = new SiteReplica(
      new Core({
        site,
        parent: PARENTS[site] ?? null,
        tier: "edge",
        url: "",
        linkAddress: "",
        capacityBytes: 1 << 30,
        owners,
      }, {
        clock,
        random: { bytes: (length) => Uint8Array.from({ length }, () => random.integer(0, 255)) },
        storage: new MemoryStorage(),
        network: {
          send: (to, message) =>
            holder.endpoint === null
              ? Promise.resolve()
              : this.network.send(holder.endpoint, site, to, message),
        },
        fatal: (error) => {
          throw error;
        },
        note: (event, detail) => void this.notes.push(`${event} ${detail?.from}`),
      }),
    );
    await replica.start();
    const endpoint = holder.endpoint = {
      connected: (other: SiteId, role: "parent" | "child" | "peer") => replica.connected(other, role),
      disconnected: (other: SiteId) => replica.disconnected(other),
      receive: (from: SiteId, message: Uint8Array) => replica.receive(from, message),
    };
    this.network.up(site, endpoint);
    this.replicas.set(site, replica);
    return replica;
  }

  pass(ms: number): Promise<boolean> {
    return this.world.run(this.world.nowMs + ms);
  }
}

async function tree(): Promise<{ tree: Tree; root: SiteReplica; e1: SiteReplica; e2: SiteReplica }> {
  const tree = new Tree();
  const root = await tree.start("root", "x");
  const [e1, e2] = [await tree.start("e1", "x"), await tree.start("e2", "y")];
  await tree.pass(2_000);
  return { tree, root, e1, e2 };
}

Deno.test("sites of a tree find each other alive, and choose by area", async () => {
  const { root, e1, e2 } = await tree();
  for (const replica of [root, e1, e2]) {
    assert.deepEqual(replica.status().watched.map(({ standing }) => standing), ["alive", "alive"]);
    assert.equal(replica.status().ownersMissing, null);
  }
  assert.deepEqual(e1.owners.choose().owners, ["e1", "e2"]);
  assert.deepEqual(root.owners.choose().owners, ["root", "e2"]);
});

Deno.test("a site that is cut off is suspected, then dead, and chosen no more", async () => {
  const { tree: { network, world }, tree: all, e1 } = await tree();
  network.partition("e1", "e2", world.nowMs + 5_000);
  await all.pass(400);
  assert.equal(e1.owners.detector.standing("e2"), "suspected");
  assert.deepEqual(e1.owners.choose().owners, ["e1", "root"]);
  await all.pass(2_000);
  assert.equal(e1.owners.detector.standing("e2"), "dead");
  await all.pass(10_000);
  assert.equal(e1.owners.detector.standing("e2"), "alive");
});

Deno.test("a site that announced a stop is chosen no more, at once", async () => {
  const { tree: all, e1, e2 } = await tree();
  const away = e2.members.leave(4_000_000_000_000);
  await all.pass(200);
  await away;
  assert.deepEqual(e1.owners.choose().owners, ["e1", "root"]);
});

Deno.test("settings change while a site runs; what cannot be met changes nothing", async () => {
  const { tree: all, e1 } = await tree();
  const { settings } = e1.owners;
  await assert.rejects(e1.owners.configure({ ...settings, f: 3 }), (error) => {
    assert.ok(error instanceof OwnersError);
    return /e1 at f = 3 other sites: the tree has n = 3 sites, so f may be up to 2/.test(error.message);
  });
  await assert.rejects(e1.owners.configure({ ...settings, sites: ["e9"] }), /e9 as owners: no such site/);
  assert.equal(e1.owners.settings, settings);
  const configured = e1.owners.configure({ ...settings, f: 2, area: "z" });
  await all.pass(200);
  await configured;
  assert.deepEqual(e1.owners.choose().owners.toSorted(), ["e1", "e2", "root"]);
});

Deno.test("tuples of a use are held by sites of the tree, and adopted when their site is gone", async () => {
  const { tree: all, root, e1, e2 } = await tree();
  const mine: string[] = [];
  const open = (site: string, replica: SiteReplica) =>
    replica.owners.open("test", {
      storage: new MemoryStorage(),
      user: { mine: (_, how) => void mine.push(`${site} ${how}`), lost: () => {} },
    });
  const [, first] = [await open("root", root), await open("e1", e1), await open("e2", e2)];
  let id = "";
  void first.store(new Uint8Array(3)).then((stored) => id = stored);
  await all.pass(100);
  assert.notEqual(id, "");
  assert.deepEqual(mine, ["e1 stored"]);
  all.network.down("e1");
  await all.pass(1_000);
  assert.deepEqual(mine, ["e1 stored", "e2 adopted"]);
});

Deno.test("packets and beats of strangers are refused, counted, and noted once a minute", async () => {
  const { tree: sites, root } = await tree();
  for (let i = 0; i < 3; i++) {
    root.receive("x", encodeMessage({ kind: "tuples", use: "q", packet: new Uint8Array() }));
    root.receive("x", encodeMessage({ kind: "beat", stamp: 1, isAnswer: false }));
  }
  const { packet_stranger, beat_stranger } = root.status().counters;
  assert.deepEqual([packet_stranger, beat_stranger], [3, 3]);
  assert.deepEqual(sites.notes.filter((note) => note.endsWith(" x")), [
    "packet_stranger x",
    "beat_stranger x",
  ]);
});
