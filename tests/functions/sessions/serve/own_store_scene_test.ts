/** The store of a stateful session over real replicas in virtual time: what its tokens say of what it has touched. */
import assert from "node:assert/strict";
import type { Effect } from "../../../../functions/sessions/turn/mod.ts";
import { NO_HEAD } from "../../../../functions/sessions/serve/pieces.ts";
import { sessionRows } from "../../../../runtime/stateful/session_rows.ts";
import { OwnStore } from "../../../../functions/sessions/serve/own_store.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { appSpace } from "../../../../runtime/gateway/session_store.ts";
import type { AttachedSession, TokenState } from "../../../../store/api/api.ts";
import { packKey } from "../../../../store/model/key.ts";
import { CLOCK_TICKS_PER_MS } from "../../../../store/model/row.ts";
import { prefixRange } from "../../../../store/model/range.ts";
import { Scene } from "../../../sim/scene.ts";

const NAME = { class: "duel", id: "one", birth: "00" };
const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
const SPACE = appSpace("shop");
const TREE = {
  root: { parent: null, linkMs: 0 },
  e1: { parent: "root", linkMs: 1 },
  e2: { parent: "root", linkMs: 1 },
  e3: { parent: "root", linkMs: 1 },
} as const;
const key = packKey(["kv", "x"]);
const utf8 = new TextEncoder();

/** The store of a session that is at home at a site. */
function ownStore(
  scene: Scene,
  site: string,
  token: TokenState | null = null,
  { marks = false, isWhole = true, isShared = false, said = [], stop = () => Promise.resolve() }: {
    marks?: boolean;
    isWhole?: boolean;
    /** Hosts hold its log. */
    isShared?: boolean;
    said?: string[];
    stop?: (site: string) => Promise<void>;
  } = {},
): Promise<OwnStore> {
  const { replica } = scene.process(site);
  const nowMs = () => scene.world.nowMs;
  const leftOut = (_: unknown, text: string) => void said.push(text);
  const missed = isShared ? () => {} : undefined;
  const services = {
    replica,
    nowMs,
    leftOut,
    missed,
    ...sessionRows({ limits: LIMITS, space: SPACE, writes: undefined }),
  };
  const seen = token && { token, applied: 0, isWhole };
  return scene.done(OwnStore.open(services, NAME, { ...NO_HEAD, seen, marks }, stop));
}

const setTo = (text: string) => [{ kind: "set", key, value: utf8.encode(text) }] as const;

async function read(session: AttachedSession): Promise<string | null> {
  const [row] = await session.get([SPACE.app + key as typeof key]);
  return row?.value ? new TextDecoder().decode(row.value) : null;
}

/** What e2 writes takes a while to the root, what e1 does longer, and they don't hear each other. */
const SLOW_TREE = {
  ...TREE,
  e1: { parent: "root", linkMs: 60 },
  e2: { parent: "root", linkMs: 20 },
} as const;

for (const what of ["effects that are applied", "writes with checks"] as const) {
  Deno.test(`${what} while a caller's token is waited for are in the session's tokens`, async () => {
    const scene = new Scene(SLOW_TREE, { peerMs: 1_000 });
    await scene.start();
    const own = await ownStore(scene, "e2");
    await scene.done(own.commit(1, [{ key, versionstamp: null }], setTo("0")));
    const marks = prefixRange(packKey(["e"]));
    await scene.done(own.list({ ...marks, limit: 10, reverse: false, level: "session" })); // held from now on
    await scene.pass(500);
    await scene.done(read(await scene.attach("e3"))); // held there from now on
    const caller = await scene.attach("e1");
    await scene.write(caller, 0, 1);
    let isSeen = false, last = 0;
    const seeing = own.see(caller.token(false)).then(() => isSeen = true);
    while (!isSeen) {
      const { replica } = scene.process("e2").replica.status();
      const effect = { effect: ++last, clock: own.tick(), replica, atMs: 1, mutations: setTo(`${last}`) };
      if (what === "effects that are applied") await scene.done(own.apply(effect).then(() => own.settle()));
      else {
        const [row] = await scene.done(own.get([key], "session"));
        await scene.done(
          own.commit(1 + last, [{ key, versionstamp: row?.versionstamp ?? null }], setTo(`${last}`)),
        );
      }
      await scene.pass(1);
    }
    await seeing;
    assert.ok(last > 0, "that took a while");
    const told = await scene.done(own.token());
    const elsewhere = await scene.attach("e3", told);
    assert.equal(await scene.done(read(elsewhere)), `${last}`, "who is told of it sees it");
  });
}

Deno.test("what a home has told since the token of its log, where that is of the form before, is seen by the next (P4)", async () => {
  const scene = new Scene(SLOW_TREE, { peerMs: 100 });
  await scene.start();
  const own = await ownStore(scene, "e1"), { replica } = scene.process("e1").replica.status();
  await scene.done(read(await scene.attach("e2"))); // held there from now on
  const tell = async (effect: number) => {
    const clock = own.tick();
    await scene.done(own.apply({ effect, clock, replica, atMs: 1, mutations: setTo(`${effect}`) }));
    await scene.done(own.settle());
    return await scene.done(own.token());
  };
  const logged = await tell(1);
  await scene.pass(500); // that far it has arrived everywhere
  await tell(2);
  const next = await ownStore(scene, "e2", logged, { isWhole: false });
  const [row] = await scene.done(next.get([key], "session"));
  assert.equal(row && new TextDecoder().decode(row.value), "2");
});

Deno.test("what a site said of a stop says nothing of what a log of the form before leaves out (P4, H9)", async () => {
  const scene = new Scene(SLOW_TREE, { peerMs: 100 });
  await scene.start();
  const logged = await scene.done((await ownStore(scene, "e1")).token());
  await scene.done(read(await scene.attach("e2"))); // held there from now on
  await scene.done(scene.process("e1").replica.members.leave(0));
  scene.site("e1").crash();
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  await scene.pass(1_000);
  // A home of the version before goes on there: its pieces still have that token.
  const own = await ownStore(scene, "e1", logged, { isWhole: false });
  const { replica } = scene.process("e1").replica.status();
  await scene.done(own.apply({ effect: 1, clock: own.tick(), replica, atMs: 1, mutations: setTo("since") }));
  await scene.done(own.settle());
  await scene.done(own.token());
  const next = await ownStore(scene, "e2", logged, { isWhole: false });
  const [row] = await scene.done(next.get([key], "session"));
  assert.equal(row && new TextDecoder().decode(row.value), "since");
});

Deno.test("a log that is dated ahead of a site's clock is of nobody who is missing: its session is not opened there (O4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const home = await ownStore(scene, "e1");
  await scene.done(home.commit(1, [], setTo("seen")));
  const token = await scene.done(home.token());
  await scene.pass(1_000);
  const dated = (aheadMs: number) => {
    const ahead = { ...token, clock: token.clock + aheadMs * CLOCK_TICKS_PER_MS };
    return ownStore(scene, "e2", ahead, { isShared: true });
  };
  await assert.rejects(dated(90_000), { code: "source_unreachable", message: /a clock is wrong/ });
  const own = await dated(30_000);
  assert.ok(own.tick() > token.clock + 30_000 * CLOCK_TICKS_PER_MS, "it writes after what it had seen");
  const peers = await ownStore(scene, "e2", null, { isShared: true });
  await scene.done(peers.seeAll([{ ...token, clock: token.clock + 90_000 * CLOCK_TICKS_PER_MS }]));
  assert.ok(peers.isMissing, "one of those attached holds up nobody");
});

for (const isBack of [false, true]) {
  const what = isBack ? "that came back from its stop, and is lost then," : "that was away";
  Deno.test(`of a site ${what} and is taken off the tree a log of the form before hides no loss (P4, H9)`, async () => {
    const scene = new Scene(SLOW_TREE, { peerMs: 100 });
    await scene.start();
    const first = await ownStore(scene, "e1");
    await scene.done(first.commit(1, [], setTo("before")));
    const logged = await scene.done(first.token());
    await scene.done(read(await scene.attach("e2"))); // held there from now on
    await scene.done(scene.process("e1").replica.members.leave(scene.world.nowMs + 1_000));
    scene.site("e1").crash();
    if (isBack) {
      await scene.site("e1").start();
      await scene.until(() => scene.process("e1").ready);
      await scene.pass(1_000);
      // A home of the version before goes on there: its pieces still have that token.
      const own = await ownStore(scene, "e1", logged, { isWhole: false });
      const { replica } = scene.process("e1").replica.status();
      scene.network.stall("e1", "root", Infinity);
      await scene.done(
        own.apply({ effect: 1, clock: own.tick(), replica, atMs: 1, mutations: setTo("since") }),
      );
      await scene.done(own.settle());
      await scene.done(own.token()); // it is told
      scene.site("e1").wipe(true);
    }
    await scene.pass(2_000);
    const { members } = scene.process("root").replica;
    assert.equal((await scene.done(members.remove("e1"))).kind, "removed");
    await scene.pass(1_000);
    const next = ownStore(scene, "e2", logged, { isWhole: false });
    if (isBack) return await assert.rejects(next, { code: "source_lost" });
    const [row] = await scene.done((await next).get([key], "session"));
    assert.equal(row && new TextDecoder().decode(row.value), "before");
  });
}

Deno.test("a session that takes in a token after its site got another parent is one that has seen what stands there", async () => {
  const tree = {
    ...TREE,
    c1: { parent: "root", linkMs: 1 },
    c2: { parent: "root", linkMs: 1 },
    e2: { parent: "c1", linkMs: 10 },
  } as const;
  const scene = new Scene(tree);
  await scene.start();
  const own = await ownStore(scene, "e2");
  const { replica } = scene.process("e2").replica.status();
  const caller = await scene.attach("e1");
  await scene.write(caller, 0, 1);
  await scene.done(
    own.apply({ effect: 1, clock: own.tick(), replica, atMs: 1, mutations: setTo("mine") }),
  );
  await scene.done(own.settle());
  await scene.move("e2", "c2");
  await scene.done(own.see(caller.token(false)));
  await scene.done(
    own.apply({ effect: 2, clock: own.tick(), replica, atMs: 1, mutations: setTo("later") }),
  );
  await scene.done(own.settle());
  const told = await scene.done(own.token());
  assert.equal(told.replica, scene.process("e2").replica.status().replica);
  const elsewhere = await scene.attach("e3", told);
  assert.equal(await scene.done(read(elsewhere)), "later");
  await scene.pass(3_000);
  const settled = await scene.done(own.token());
  assert.ok(settled.path.every((position) => position !== null), "in the end nothing of it is pending");
});

Deno.test("what two isolates of a home ask for, since one of them was lost, is written once (O7)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const before = await ownStore(scene, "e2"), after = await ownStore(scene, "e2");
  // The first waits for its mark, which is not here, when the second asks.
  const other = packKey(["kv", "y"]), sum = packKey(["kv", "sum"]);
  const checks = [{ key: other, versionstamp: null }];
  const both = <T>(ask: (store: OwnStore) => Promise<T>) => scene.done(Promise.all([before, after].map(ask)));
  const [one, two] = await both((store) => store.commit(1, checks, setTo("once")));
  assert.deepEqual(two, one, "both are told what was done");
  assert.deepEqual(
    (await both((store) => store.commit(2, [{ key, versionstamp: null }], setTo("never"))))[1],
    {
      ok: false,
    },
  );
  const { replica } = scene.process("e2").replica.status();
  const mutations = [{ kind: "sum", key: sum, value: encodeValue(2) }] as const;
  const effect = { effect: 1, clock: before.tick(), replica, atMs: 1, mutations };
  await both((store) => store.apply(effect));
  const [row] = await scene.done(after.get([sum], "session"));
  assert.equal(row && decodeValue(row.value), 2);
});

/** A log leaves it to be made. */
async function again(own: OwnStore, effect: Effect): Promise<void> {
  await own.knowMarks({ effects: [effect], calls: [] });
  await own.apply(effect);
}

/** Whoever opens a log tries again as long as what was made can't be known. */
async function untilKnown(make: () => Promise<void>): Promise<void> {
  for (;;) {
    const code = await make().then(() => null, (error) => error.code);
    if (code === null) return;
    assert.match(code, /^(source|store)_unreachable$/);
  }
}

const CHECKED = { call: 1, kind: "commit", bytes: new Uint8Array(), effect: 1 } as const;
const sumKey = packKey(["kv", "sum"]);
const DEEP_TREE = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 20 },
  e1: { parent: "core", linkMs: 20 },
  e2: { parent: "core", linkMs: 20 },
  e3: { parent: "root", linkMs: 20 },
} as const;

/** A session at e1 that has made a sum of 2, of which its log holds the effect, and that e1's disk is lost then. */
async function lostWithSum(scene: Scene, passMs: number) {
  await scene.start();
  const own = await ownStore(scene, "e1");
  const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
  await scene.done(own.get([sumKey], "session"));
  const token = await scene.done(own.token());
  await scene.pass(1_000);
  const { replica } = scene.process("e1").replica.status();
  const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
  void own.apply(effect);
  await scene.pass(passMs);
  scene.site("e1").wipe();
  return { token, effect };
}

const sumAt = async (scene: Scene, own: OwnStore) => {
  const [row] = await scene.done(own.get([sumKey], "session"));
  return row ? decodeValue(row.value) : null;
};

for (
  const [left, passMs] of [
    ["had come to the root", 2_000],
    ["was on its way", 45],
    ["was on its disk alone", 5],
  ] as const
) {
  for (const home of ["e1", "e2", "e3", "core"] as const) {
    Deno.test(`a sum whose home has lost its disk is made once, where it ${left}, by the next home: ${home} (O5, H14)`, async () => {
      const scene = new Scene(DEEP_TREE), said: string[] = [];
      const { token, effect } = await lostWithSum(scene, passMs);
      await scene.pass(500);
      await scene.site("e1").start();
      await scene.until(() => scene.process("e1").ready);
      const next = await ownStore(scene, home, token, { marks: true, said });
      const applied = again(next, effect);
      await scene.pass(20_000);
      await scene.done(applied);
      assert.equal(await sumAt(scene, next), 2);
      await scene.pass(2_000);
      assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
      assert.deepEqual(said, []);
    });
  }
}

for (
  const change of [
    "gets another parent",
    "loses the disk above it",
    "gets another parent, as that and what it alone had is lost for good,",
  ] as const
) {
  for (const [isMade, home] of [[true, "e1"], [false, "e1"], [true, "e3"], [false, "e3"]] as const) {
    const what = isMade ? "has made" : "has not made";
    Deno.test(`a sum that a home ${what}, which ${change} and goes on, is made once by the next home: ${home} (O5)`, async () => {
      const scene = new Scene(DEEP_TREE), said: string[] = [];
      await scene.start();
      const own = await ownStore(scene, "e1");
      await scene.done(own.get([sumKey, key], "session"));
      await scene.done(
        own.list({ ...prefixRange(packKey(["e"])), limit: 10, reverse: false, level: "session" }), // its marks
      );
      await scene.done(own.commit(1, [], setTo("on its way still as the token leaves")));
      const token = await scene.done(own.token());
      await scene.pass(1_000);
      const moves = change.includes("parent"), lost = change.includes("lost for good") ? ["core"] : [];
      if (lost.length > 0) {
        scene.network.stall("core", "root", Infinity);
        await scene.done((await ownStore(scene, "core")).commit(1, [], setTo("lost")));
        await scene.pass(100);
        scene.site("core").crash();
        await scene.move("e2", "root", lost);
      }
      scene.network.stall("e1", "core", Infinity);
      const { replica } = scene.process("e1").replica.status();
      const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
      const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
      if (isMade) await scene.done(own.apply(effect).then(() => own.durable()));
      scene.site("e1").crash();
      if (!moves) scene.site("core").wipe();
      await scene.pass(100);
      if (!moves) await scene.site("core").start();
      const next = home === "e1" ? null : await ownStore(scene, home, token, { marks: true, said });
      let isApplied = false;
      const applied = next && untilKnown(() => again(next, effect)).then(() => void (isApplied = true));
      await scene.pass(5_000);
      assert.equal(isApplied, false, "e1 alone can tell");
      await scene.site("e1").start();
      if (moves) await scene.move("e1", "root", lost);
      await scene.until(() => scene.process("e1").replica.status().replica !== replica);
      await scene.done(applied ?? again(await ownStore(scene, "e1", token, { marks: true, said }), effect));
      await scene.pass(2_000);
      assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
      assert.deepEqual(said, []);
    });
  }
}

Deno.test("what was written after a sum, and is as old as what the store forgets, is seen nowhere without it (O6)", async () => {
  const scene = new Scene(TREE, { horizonMs: 300 }), said: string[] = [];
  await scene.start();
  const sites = ["root", "e1", "e2", "e3"] as const;
  const own = await ownStore(scene, "e1");
  await scene.done((await ownStore(scene, "root")).commit(99, [], setTo("before")));
  for (const site of sites) await scene.done((await ownStore(scene, site)).get([key, sumKey], "session"));
  await scene.pass(100);
  const { replica } = scene.process("e1").replica.status();
  const effectOf = (effect: number, mutations: Effect["mutations"]) => ({
    ...{ effect, clock: own.tick(), replica, atMs: 1, mutations },
  });
  const effects = [
    effectOf(1, [{ kind: "sum", key: sumKey, value: encodeValue(2) }]),
    effectOf(2, setTo("after")),
    effectOf(3, [{ kind: "sum", key: sumKey, value: encodeValue(4) }]),
  ];
  await scene.pass(1_500); // the watermark passes them
  // Opened twice: a home that was lost as it made them, and the next one.
  for (const home of ["e2", "e3"]) {
    const next = await ownStore(scene, home, null, { said });
    let isOver = false;
    const making = (async () => {
      await next.applyOld(effects);
      for (const effect of effects) await next.apply(effect);
      await next.settle();
    })();
    void making.finally(() => isOver = true);
    while (!isOver) {
      await scene.pass(1);
      for (const site of sites) {
        const rows = await scene.done(
          (await scene.attach(site)).get([`${SPACE.app}${key}`, `${SPACE.app}${sumKey}`] as (typeof key)[]),
        );
        const [text, sum] = rows.map((row) => row?.value ?? null);
        const isAfter = text != null && new TextDecoder().decode(text) === "after";
        assert.equal(isAfter, sum != null, `${site} has one of them alone`);
      }
    }
    await making;
    await scene.pass(1_000);
    assert.equal(await sumAt(scene, await ownStore(scene, "root")), 6, "each once");
  }
  assert.deepEqual(said, []);
});

Deno.test("of old writes a sum that can't be made is left out alone, and said to be (O6)", async () => {
  const scene = new Scene(TREE, { horizonMs: 300 }), said: string[] = [];
  await scene.start();
  const own = await ownStore(scene, "e1", null, { said });
  await scene.done(own.commit(1, [], setTo("no number")));
  const { replica } = scene.process("e1").replica.status();
  const effects = [key, sumKey].map((key, i): Effect => ({
    ...{ effect: i + 1, clock: own.tick(), replica, atMs: 1 },
    mutations: [{ kind: "sum", key, value: encodeValue(2) }],
  }));
  await scene.pass(1_500); // the watermark passes them
  await scene.done(own.applyOld(effects));
  assert.equal(said.length, 1);
  assert.match(said.join(), /refused: MergeError/);
  for (const effect of effects) await scene.done(own.apply(effect));
  assert.equal(said.length, 1, "once");
  assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
});

for (const isLost of [false, true]) {
  const what = isLost ? "has lost its disk" : "can't be asked";
  Deno.test(`of a session that goes on without a site that ${what} no sum is made twice (O4, O5)`, async () => {
    const scene = new Scene(TREE), said: string[] = [];
    await scene.start();
    const own = await ownStore(scene, "e1");
    await scene.done(own.get([sumKey], "session"));
    const marks = prefixRange(packKey(["e"]));
    await scene.done(own.list({ ...marks, limit: 10, reverse: false, level: "session" }));
    scene.network.stall("e1", "root", Infinity);
    const { replica } = scene.process("e1").replica.status();
    const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
    const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
    await scene.done(own.apply(effect));
    const told = await scene.done(own.token());
    // One that can't be asked may have a clock that is ahead.
    const token = isLost ? told : { ...told, clock: told.clock + 30_000 * CLOCK_TICKS_PER_MS };
    if (isLost) scene.site("e1").wipe();
    else scene.site("e1").crash();
    await scene.pass(500);
    if (isLost) await scene.site("e1").start();
    const next = await ownStore(scene, "e2", token, { said, isShared: true });
    assert.ok(next.isMissing);
    assert.ok(next.tick() > token.clock, "what it writes is later than all it had seen there");
    await scene.done(again(next, effect)); // all since its last checkpoint
    assert.equal(said.length, isLost ? 0 : 1);
    if (!isLost) await scene.site("e1").start();
    await scene.pass(3_000);
    assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
  });
}

Deno.test("what may have been made by a home that has lost its disk with the site above it is left out, and said to be, also by who asks this site later (O5)", async () => {
  const scene = new Scene(DEEP_TREE), said: string[] = [];
  const { token, effect } = await lostWithSum(scene, 25);
  scene.site("core").wipe();
  await scene.pass(500);
  for (const site of ["core", "e1"]) await scene.site(site).start();
  for (const site of ["core", "e1"]) await scene.until(() => scene.process(site).ready);
  const next = await ownStore(scene, "e3", token, { marks: true, said });
  await scene.done(next.knowMarks({ effects: [effect], calls: [CHECKED] }));
  assert.equal(said.length, 2);
  assert.match(said[0] ?? "", /^whether 1 rows were merged into \(sum\) is not known/);
  assert.match(said[1] ?? "", /^whether a write with checks was made is not known/);
  const named = await scene.done(next.token());
  const last = await ownStore(scene, "e2", named, { marks: true, said });
  await scene.done(last.knowMarks({ effects: [effect], calls: [CHECKED] }));
  for (const own of [next, last]) {
    await scene.done(own.apply(effect));
    await assert.rejects(scene.done(own.commit(1, [], setTo("made"))), ({ code }) => code === "source_lost");
    assert.equal(await sumAt(scene, own), null);
  }
  assert.equal(said.length, 2);
});

Deno.test("a sum that is on the disk of a home alone is not made again while that is away, whoever stands in for it (O5, H14)", async () => {
  const scene = new Scene({ ...TREE, e1: { ...TREE.e1, owners: { f: 1, sites: ["e3"] } } });
  await scene.start();
  await scene.pass(500); // owners are in effect
  const own = await ownStore(scene, "e1");
  await scene.done(own.get([sumKey], "session"));
  const token = await scene.done(own.token());
  const { replica } = scene.process("e1").replica.status();
  scene.network.partition("e1", "root", 1_000);
  scene.network.partition("e1", "e3", 1_000);
  const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
  const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
  own.apply(effect).catch(() => {});
  await scene.pass(50);
  scene.site("e1").crash();
  await scene.pass(2_000);
  const next = await ownStore(scene, "e2", token, { marks: true });
  let isApplied = false;
  const applying = untilKnown(() => again(next, effect)).then(() => isApplied = true);
  await scene.pass(5_000);
  assert.equal(isApplied, false, "nobody but e1 can tell");
  await scene.site("e1").start();
  await scene.pass(5_000);
  await scene.done(applying);
  await scene.pass(2_000);
  assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
});

for (const what of ["a sum", "a write with checks"] as const) {
  Deno.test(`${what} that only an owner has, since the disk of its home is lost, is waited for until that owner is back (O5, H14)`, async () => {
    const scene = new Scene({ ...TREE, e1: { ...TREE.e1, owners: { f: 1, sites: ["e3"] } } }),
      said: string[] = [];
    await scene.start();
    await scene.pass(500); // owners are in effect
    const own = await ownStore(scene, "e1");
    const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
    await scene.done(own.get([sumKey, key], "session"));
    const marks = prefixRange(packKey(["e"]));
    await scene.done(own.list({ ...marks, limit: 10, reverse: false, level: "session" }));
    const token = await scene.done(own.token());
    const { replica } = scene.process("e1").replica.status();
    const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
    const make = (own: OwnStore) =>
      what === "a sum" ? again(own, effect) : own.knowMarks({ effects: [], calls: [CHECKED] })
        .then(() => own.commit(1, [{ key, versionstamp: null }], setTo("made"))).then(() => {});
    scene.network.stall("e1", "root", Infinity);
    await scene.done(make(own));
    await scene.done(own.durable());
    scene.site("e1").wipe();
    scene.site("e3").crash();
    scene.network.heal();
    await scene.site("e1").start();
    await scene.until(() => scene.process("e1").ready);
    await scene.pass(15_000);
    const next = await ownStore(scene, "e2", token, { marks: true, said });
    let isMade = false;
    const making = untilKnown(() => make(next)).then(() => isMade = true);
    await scene.pass(25_000);
    assert.equal(isMade, false, "e3 alone can tell");
    const rows = await scene.done((await ownStore(scene, "root")).get([sumKey, key], "session"));
    assert.deepEqual(rows, [null, null]);
    await scene.site("e3").start();
    await scene.pass(30_000);
    await scene.done(making);
    await scene.pass(2_000);
    assert.deepEqual(said, []);
    const at = await ownStore(scene, "root");
    if (what === "a sum") return assert.equal(await sumAt(scene, at), 2);
    const [row] = await scene.done(at.get([key], "session"));
    assert.equal(
      row?.versionstamp.slice(-6),
      replica.toString(16).padStart(6, "0"),
      "made by e1, and by nobody else",
    );
  });
}

Deno.test("a sum that another site has been sent, and can't take in before the disk of its home is lost, is made once (H14)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const own = await ownStore(scene, "e1");
  await scene.done(own.get([sumKey], "session"));
  const marks = prefixRange(packKey(["e"]));
  await scene.done(own.list({ ...marks, limit: 10, reverse: false, level: "session" }));
  const token = await scene.done(own.token());
  await scene.pass(500);
  // What e1 has seen of the root comes to e3 seconds later, and with it what rests on that.
  scene.network.stall("root", "e3", scene.world.nowMs + 3_000);
  scene.network.stall("e1", "root", Infinity);
  await scene.done((await ownStore(scene, "root")).commit(1, [], setTo("seen by e1")));
  await scene.pass(100);
  const { replica } = scene.process("e1").replica.status();
  const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
  const effect = { effect: 1, clock: own.tick(), replica, atMs: 1, mutations };
  await scene.done(own.apply(effect));
  const open = { ...await scene.done(own.token()), open: true };
  const arriving = scene.attach("e3", open).catch(({ code }) => code);
  await scene.pass(100);
  scene.site("e1").wipe();
  await scene.pass(100);
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  const next = await ownStore(scene, "e2", token, { marks: true });
  const making = untilKnown(() => again(next, effect));
  await scene.pass(30_000);
  await scene.done(making);
  await scene.pass(2_000);
  assert.equal(await scene.done(arriving), "source_unreachable");
  assert.equal(await sumAt(scene, await ownStore(scene, "root")), 2);
});

for (const what of ["a sum", "a write with checks"] as const) {
  Deno.test(`${what} that waits at the home before, cut off and not over, is made by the next home alone (O5, H15)`, async () => {
    const scene = new Scene(DEEP_TREE), other = packKey(["kv", "other"]);
    await scene.start();
    const before = await ownStore(scene, "e1");
    await scene.done(
      before.list({ ...prefixRange(packKey(["other"])), limit: 10, reverse: false, level: "session" }),
    );
    const token = await scene.done(before.token());
    await scene.pass(1_000);
    const { replica } = scene.process("e1").replica.status();
    const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
    const effect = { effect: 1, clock: before.tick(), replica, atMs: 1, mutations };
    const make = (own: OwnStore) =>
      what === "a sum" ? again(own, effect) : own.knowMarks({ effects: [], calls: [CHECKED] })
        .then(() => own.commit(1, [{ key: other, versionstamp: null }], setTo("made"))).then(() => {});
    scene.network.partition("e1", "core", 300);
    let refused = "";
    const first = make(before).catch(({ code }) => refused = code); // waits for what it looks at
    await scene.pass(100);
    const stopped: string[] = [];
    const next = await ownStore(scene, "e3", token, {
      marks: true,
      stop: (site) => {
        stopped.push(site);
        before.close();
        return Promise.resolve();
      },
    });
    await scene.done(make(next));
    await scene.done(first);
    assert.deepEqual({ stopped, refused }, { stopped: ["e1"], refused: "closed" });
    await scene.pass(2_000);
    const read = await ownStore(scene, "root");
    if (what === "a sum") return assert.equal(await sumAt(scene, read), 2);
    const [row] = await scene.done(read.get([key], "session"));
    assert.equal(row && new TextDecoder().decode(row.value), "made");
  });
}
