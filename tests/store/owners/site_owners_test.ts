import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { OwnersError } from "../../../store/presence/choose.ts";
import type { SiteReplica } from "../../../store/replica.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { TUPLE_BYTES_MAX } from "../../../store/model/limits.ts";
import { decodeMessage, encodeMessage } from "../../../store/wire/message.ts";
import { encodeTuplePacket } from "../../../store/owners/packet.ts";
import { prefixRange, type Range, WHOLE } from "../../../store/model/range.ts";
import { ROOT_ONLY_RANGE, SYSTEM_RANGE } from "../../../store/members/topology.ts";
import { Tree } from "./tree.ts";

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

Deno.test("settings change while a site runs; what cannot be met changes nothing (W2)", async () => {
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

Deno.test("with f = 0 nobody is measured; with a use that has others somebody is, and with other settings (W1)", async () => {
  const all = new Tree(), replicas: SiteReplica[] = [];
  for (const site of ["root", "e1", "e2"]) replicas.push(await all.start(site, "x", 0, 0));
  await all.pass(2_000);
  const [root, e1, e2] = replicas as [SiteReplica, SiteReplica, SiteReplica];
  const watched = (replica: SiteReplica) => replica.status().watched.map(({ site }) => site).toSorted();
  assert.deepEqual(replicas.map(watched), [[], [], []]);
  const opened = (f: number) => ({
    storage: new MemoryStorage(),
    user: { mine: () => {}, lost: () => {} },
    f: () => f,
  });
  await e1.owners.open("none", opened(0));
  assert.deepEqual(watched(e1), []);
  await e1.owners.open("one", opened(1));
  assert.deepEqual(watched(e1), ["e2", "root"]);
  const configured = e2.owners.configure({ ...e2.owners.settings, f: 1, area: "z" });
  assert.deepEqual(watched(e2), ["e1", "root"], "at once");
  await all.pass(200);
  await configured;
  await all.pass(200);
  assert.deepEqual(watched(root), []);
  // The others know its area.
  const choice = (last: string | null) => e1.owners.choose(1, [], () => false, last).owners;
  assert.deepEqual(choice(null), ["e1", "e2"], "the root is of its own area");
  assert.throws(() => e1.owners.choose(3), { code: "owners_too_many" });
});

Deno.test("a site whose loss costs most is chosen where there is no other (C5)", async () => {
  const all = new Tree(), sites = ["root", "e1", "e2"] as const;
  for (const site of sites) await all.start(site, null);
  await all.pass(2_000);
  const { owners } = all.replicas.get("e1") ?? assert.fail();
  for (const [last, other] of [["root", "e2"], ["e2", "root"]] as const) {
    assert.deepEqual(owners.choose(1, [], () => false, last).owners, ["e1", other]);
    assert.deepEqual(owners.choose(1, [], (site) => site === other, last).owners, ["e1", last]);
  }
});

Deno.test("tuples of a use are held by sites of the tree, and adopted when their site is gone", async () => {
  const { tree: all, root, e1, e2 } = await tree();
  const mine: string[] = [];
  const open = (site: string, replica: SiteReplica) =>
    replica.owners.open("test", {
      storage: new MemoryStorage(),
      user: { mine: ({ how }) => void mine.push(`${site} ${how}`), lost: () => {} },
    });
  const [, first] = [await open("root", root), await open("e1", e1), await open("e2", e2)];
  let id = "";
  void first.store({ payload: new Uint8Array(3), topic: "mail", f: 1 }).then((stored) => id = stored);
  await all.pass(100);
  assert.notEqual(id, "");
  assert.deepEqual(mine, ["e1 stored"]);
  all.network.down("e1");
  await all.pass(1_000);
  assert.deepEqual(mine, ["e1 stored", "e2 adopted"]);
});

Deno.test("a site that says that it stops adopts nothing any more, of a use that is opened later neither (O8)", async () => {
  for (const isLate of [false, true]) {
    const { tree: all, root, e1, e2 } = await tree();
    const mine: string[] = [];
    const open = (site: string, replica: SiteReplica) =>
      replica.owners.open("test", {
        storage: new MemoryStorage(),
        user: { mine: ({ how }) => void mine.push(`${site} ${how}`), lost: () => {} },
      });
    const leave = () => void e2.members.leave(4_000_000_000_000);
    const [, first] = [await open("root", root), await open("e1", e1)];
    if (isLate) leave();
    await open("e2", e2);
    void first.store({ payload: new Uint8Array(3), topic: "mail", f: 1 });
    await all.pass(100);
    assert.deepEqual(mine, ["e1 stored"]);
    if (!isLate) leave();
    all.network.down("e1");
    await all.pass(1_000);
    assert.deepEqual(mine, ["e1 stored"]);
  }
});

Deno.test("a site that was removed is not waited for, whatever it had said of its return (O8)", async () => {
  const { tree: all, root, e1, e2 } = await tree();
  const mine: string[] = [];
  const open = (site: string, replica: SiteReplica) =>
    replica.owners.open("test", {
      storage: new MemoryStorage(),
      user: { mine: ({ how }) => void mine.push(`${site} ${how}`), lost: () => {} },
    });
  const [, first] = [await open("root", root), await open("e1", e1), await open("e2", e2)];
  void first.store({ payload: new Uint8Array(3), topic: "mail", f: 1 });
  await all.pass(100);
  void e1.members.leave(4_000_000_000_000);
  await all.pass(100);
  all.network.down("e1");
  await all.pass(5_000);
  assert.deepEqual(mine, ["e1 stored"]);
  void root.members.remove("e1");
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

Deno.test("what no site of ours would say is refused, counted, and noted once a minute for each site", async () => {
  const { tree: sites, root } = await tree();
  const tooLong = encodeTuplePacket({
    ...{
      boot: 1,
      to: 0,
      seq: 1,
      greeting: 0,
      list: 0,
      part: 0,
      isListEnd: false,
      receipts: [],
      missing: [],
      forget: [],
    },
    entries: [{
      ...{
        id: "t",
        version: 1,
        owners: ["e1", "root"],
        mark: { dueMs: 0, note: "" },
        isUnsure: false,
        goneUntilS: 0,
      },
      content: { topic: "mail", f: 1, rememberUntilS: 0, payload: new Uint8Array(TUPLE_BYTES_MAX + 1) },
    }],
  });
  const opened = root.owners.open("q", {
    storage: new MemoryStorage(),
    user: { mine: () => {}, lost: () => {} },
  });
  await sites.pass(100);
  await opened;
  const heard = () => {
    for (let i = 0; i < 3; i++) {
      root.receive("e1", new Uint8Array([255, i]));
      root.receive("e2", encodeMessage({ kind: "tuples", use: "q", packet: tooLong }));
      root.receive("e2", encodeMessage({ kind: "again" }));
      root.receive(
        "e2",
        encodeMessage({ kind: "carry", id: 1, outcome: "rows", need: 0, clock: 1e15, rows: [] }),
      );
    }
  };
  sites.notes.length = 0;
  heard();
  await sites.pass(100);
  const noted = ["message_malformed e1", "message_malformed e2", "clock_ahead e2", "unexpected_message e2"];
  assert.deepEqual(sites.notes, noted);
  await sites.pass(61_000);
  heard();
  await sites.pass(100);
  assert.deepEqual(sites.notes, [...noted, ...noted]);
  const { message_malformed, clock_ahead, unexpected_message } = root.status().counters;
  assert.deepEqual([message_malformed, clock_ahead, unexpected_message], [12, 6, 6]);
});

Deno.test("a child that says it covers what only the root may have is told that it does not, and is fed nothing of it", async () => {
  const { tree: sites, root, e1 } = await tree();
  const hello = {
    ...{
      kind: "hello",
      attempt: 1,
      replica: e1.status().replica,
      parentReplica: root.status().replica,
    } as const,
    ...{ cursor: root.status().position, clock: 1, tier: "edge", url: "", linkAddress: "" },
  };
  const fed = new Set<Key>();
  const refused: Range[] = [];
  e1.receive = (_, bytes) => {
    const message = decodeMessage(bytes);
    if (message.kind === "feed") { for (const { key } of message.rows) fed.add(key); }
    if (message.kind === "welcome") refused.push(...message.refused);
  };
  const shown = packKey(["a", 1]), hidden = packKey(["r", 1]);
  root.receive(
    "e1",
    encodeMessage({
      ...hello,
      coverage: [SYSTEM_RANGE, prefixRange(packKey(["a"])), ROOT_ONLY_RANGE, WHOLE],
    }),
  );
  await sites.pass(50);
  const session = await root.attach(null);
  await session.write([shown, hidden].map((key) => ({ kind: "set", key, value: new Uint8Array([1, 1]) })));
  await sites.pass(500);
  assert.deepEqual([fed.has(shown), fed.has(hidden)], [true, false]);
  assert.deepEqual(refused, [ROOT_ONLY_RANGE, WHOLE]);
  assert.equal(root.status().counters.range_refused, 2);
  assert.equal(sites.notes.filter((note) => note === "range_refused e1").length, 1);
});
