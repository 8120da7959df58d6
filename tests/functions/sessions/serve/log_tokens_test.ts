/**
 * What the log of a stateful session says that it has seen (functions/sessions/serve/pieces.ts): a run over a real replica in
 * virtual time, with an isolate by hand and a home that notes what it is given, and when.
 */
import { callMaker } from "./call_maker.ts";
import assert from "node:assert/strict";
import type {
  Home,
  IsolateCommit as HomeCommit,
  OpenedSession as OpenedHome,
} from "../../../../functions/sessions/home/mod.ts";
import { decodeRows, encodeGet } from "../../../../functions/sessions/turn/call_bytes.ts";
import type { Commit, Effect, OpenedProgram } from "../../../../functions/sessions/turn/mod.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { appSpace } from "../../../../runtime/gateway/session_store.ts";
import { sessionRows } from "../../../../runtime/stateful/session_rows.ts";
import { OwnStore } from "../../../../functions/sessions/serve/own_store.ts";
import { NO_HEAD, openPiece, type PieceHead } from "../../../../functions/sessions/serve/pieces.ts";
import type { RunListener } from "../../../../functions/sessions/serve/run_over.ts";
import { ClockLead, RunVersions } from "../../../../functions/sessions/serve/run_versions.ts";
import { SessionRun } from "../../../../functions/sessions/serve/session_run.ts";
import type { AttachedSession } from "../../../../store/api/api.ts";
import { packKey } from "../../../../store/model/key.ts";
import { isMerge } from "../../../../store/model/merge.ts";
import { Scene, type SceneOptions } from "../../../sim/scene.ts";

const NAME = { class: "duel", id: "one", birth: "00" };
const SPACE = appSpace("shop");
const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
const owners = { f: 1 };
const TREE = {
  root: { parent: null, linkMs: 0 },
  e1: { parent: "root", linkMs: 20, owners: { ...owners, sites: ["e3"] } },
  e2: { parent: "root", linkMs: 20 },
  e3: { parent: "root", linkMs: 20 },
} as const;
const key = packKey(["kv", "x"]), there = (SPACE.app + key) as typeof key;
const utf8 = new TextEncoder(), text = new TextDecoder();
const setTo = (what: string) => [{ kind: "set", key, value: utf8.encode(what) }] as const;
const atRest: OpenedProgram = {
  ...{ sequence: 0, peers: [], outputs: [], effects: [], timers: [], calls: [], handling: null },
  ...{ isQuiescent: true, isEnded: false },
};

/** A piece, and what stood on the disk of its site when the home was given it. */
interface Given extends PieceHead {
  readonly isSafe: boolean;
}

async function ownStore(
  scene: Scene,
  site: string,
  head: PieceHead = NO_HEAD,
  said: string[] = [],
): Promise<OwnStore> {
  const { replica } = scene.process(site);
  const nowMs = () => scene.world.nowMs;
  const leftOut = (_: unknown, text: string) => void said.push(`error ${text}`);
  const services = {
    replica,
    nowMs,
    leftOut,
    ...sessionRows({ limits: LIMITS, space: SPACE, writes: undefined }),
  };
  return await scene.done(OwnStore.open(services, NAME, head, () => Promise.resolve()));
}

/** A run at a site that serves. @param opened what its log says. */
async function running(scene: Scene, site: string, opened: OpenedProgram = atRest, open = 0) {
  const run = await opening(scene, site, opened, { ...NO_HEAD, open });
  await scene.done(run.started);
  run.run.serve(null);
  await scene.pass(1);
  return run;
}

/** One that opens. @param head what its log says last. */
async function opening(scene: Scene, site: string, opened: OpenedProgram, head: PieceHead) {
  const { replica } = scene.process(site), said: string[] = [];
  const store = await ownStore(scene, site, head, said);
  const pieces: Given[] = [], left: string[] = [], results: Uint8Array[] = [];
  const held: PromiseWithResolvers<void>[] = [];
  const home = {
    ...{ sequence: 0, epoch: 1, over: new Promise(() => {}), logBytes: 0, hosts: { asked: [] } },
    settled: async () => void await Promise.all(held.map(({ promise }) => promise)),
    rest: () => Promise.resolve(),
    commit: ({ count, entries }: HomeCommit) => {
      home.sequence += count;
      const { bytes: _, ...head } = openPiece(entries);
      pieces.push({ ...head, isSafe: replica.isDurable(head.seen?.token.path.at(-1) ?? 0) });
      held.push(Promise.withResolvers());
      return held.at(-1)?.promise;
    },
  };
  const clock = {
    nowMs: () => scene.world.nowMs,
    after: (ms: number, run: () => void) => scene.world.after(ms, run),
  };
  const peers = {
    ...{ noted() {}, opened() {}, released() {}, ready: () => Promise.resolve(), isPeer: () => false },
  };
  const run = new SessionRun({
    versions: new RunVersions({
      ...{ replica: replica.status().replica, nowMs: () => scene.world.nowMs, tick: () => store.tick() },
      lead: new ClockLead(() => scene.world.nowMs),
    }, opened.effects.map(pieceOf)),
    home: { checkpoint: null, start: () => home as unknown as Home } as unknown as OpenedHome,
    ...{ version: "v1", store, clock, nowMs: () => scene.world.nowMs, isShared: false, isAdopted: false },
    ...{ applied: 0, open: head.open, originWay: null },
    queues: { store: () => Promise.reject(new Error("no queue is here")) },
    listener: {
      ...{ peers, done() {}, over() {}, log: (level: string, text: string) => said.push(`${level} ${text}`) },
      answered: (request: string) => void left.push(request),
    } as unknown as RunListener,
    calls: callMaker({
      store,
      outside: null as never,
      keyOf: String,
      callSession: () => Promise.reject(),
    }),
  });
  const isolate = {
    ...{ acknowledge() {}, closeChannel() {}, checkpointNow() {}, holds() {}, kill() {} },
    deliver: (_: number, event: { outcome?: { bytes?: Uint8Array } }) => {
      if (event.outcome?.bytes) results.push(event.outcome.bytes);
    },
  };
  const started = run.start(Promise.resolve({ channel: 1, isolate } as never));
  await scene.pass(1);
  run.opened(opened);
  await scene.pass(0);
  let entries = 0;
  /** The isolate says that a turn is over. */
  const commit = (what: Partial<Commit> = {}) => {
    run.commit({
      ...{ first: ++entries, count: 1, entries: new Uint8Array(), through: 0, isPoint: true, outputs: [] },
      ...{ effects: [], timers: [], calls: [], rejected: null, isQuiescent: true, check: 0, isEnded: false },
      ...what,
    });
  };
  /** What it reads. */
  const read = async () => {
    const call = results.length + 1;
    run.call({ call, kind: "get", bytes: encodeGet([key], "session"), effect: null });
    await scene.until(() => results.length === call);
    const [row] = decodeRows(results.at(-1) as Uint8Array);
    return row ? text.decode(row.value) : null;
  };
  let effects = 0;
  const effectOf = (what: string): Effect => ({
    ...{ effect: ++effects, clock: store.tick(), replica: replica.status().replica, atMs: 1 },
    mutations: setTo(what),
  });
  return { run, started, store, pieces, held, left, said, commit, read, effectOf };
}

/** A piece of a log that was written where an effect was. */
const pieceOf = ({ replica, clock }: Effect) => {
  const token = { session: new Uint8Array(16), sequence: 0, replica, clock, open: false, path: [] };
  return { ...NO_HEAD, seen: { token, applied: 0, isWhole: true }, bytes: new Uint8Array() };
};

async function began(options: SceneOptions = {}): Promise<Scene> {
  const scene = new Scene(TREE, options);
  await scene.start();
  await scene.pass(500); // owners are in effect
  return scene;
}

const seenAt = async (scene: Scene, site: string, head: PieceHead): Promise<string | null> => {
  const [row] = await scene.done((await ownStore(scene, site, head)).get([key], "session"));
  return row ? text.decode(row.value) : null;
};

/** Applied when this is over, and not on disk. */
async function write(scene: Scene, session: AttachedSession, what: string): Promise<void> {
  void session.write([{ kind: "set", key: there, value: utf8.encode(what) }]);
  await scene.pass(0);
}

Deno.test("a piece says what its own entries rest on, and leaves when that is on disk here and at an owner (P1, RL3, store/session/session.ts E3)", async () => {
  const scene = await began();
  const { pieces, commit, read } = await running(scene, "e1");
  assert.equal(await read(), null); // the row is held here from now on
  const writer = await scene.attach("e1");
  await scene.pass(100);
  await write(scene, writer, "fresh");
  assert.equal(await read(), "fresh");
  assert.equal(writer.isDurable, false, "it is read before it is on disk");
  commit();
  assert.equal(pieces.length, 0, "not before");
  await scene.until(() => pieces.length === 1);
  assert.ok(pieces[0]?.isSafe);
  const head = pieces[0] ?? NO_HEAD;
  assert.equal(await seenAt(scene, "e2", head), "fresh", "whoever opens the log elsewhere has seen it, too");
});

Deno.test("what is lost with a site before it was safe is in no log that others have", async () => {
  const scene = await began();
  const { pieces, commit, read } = await running(scene, "e1");
  await read();
  const writer = await scene.attach("e1");
  await write(scene, writer, "lost");
  assert.equal(await read(), "lost");
  commit();
  scene.site("e1").crash();
  await scene.pass(1_000);
  assert.deepEqual(pieces, []);
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  assert.equal(await seenAt(scene, "e1", NO_HEAD), null);
});

Deno.test("pieces are appended one after the other, also where the first waits and the second would not", async () => {
  const scene = await began();
  const { pieces, commit, read } = await running(scene, "e1");
  await read();
  await write(scene, await scene.attach("e1"), "fresh");
  await read();
  commit({ isQuiescent: false });
  commit();
  commit({ isQuiescent: false });
  await scene.until(() => pieces.length === 3);
  assert.deepEqual(pieces.map(({ isSafe }) => isSafe), [true, true, true]);
  assert.deepEqual(pieces.map(({ seen }) => seen === null), [false, true, true]);
});

Deno.test("a run ends where what its piece rests on can't be made safe, and nothing after it is appended", async () => {
  const scene = await began();
  const { run, pieces, commit, read } = await running(scene, "e1");
  await read();
  scene.site("e3").crash();
  scene.network.partition("e1", "root", Infinity); // no other owner is to be had
  await write(scene, await scene.attach("e1"), "fresh");
  await read();
  commit();
  commit();
  await scene.pass(3_000);
  assert.deepEqual([run.isOver, pieces], [true, []]);
});

Deno.test("an answer leaves when what its commit wrote is applied and safe, and pieces behind it need not wait for that (RL2, RL3)", async () => {
  const scene = await began();
  const { pieces, held, left, commit, effectOf, store } = await running(scene, "e1");
  const answer = (to: string) => [{ to, sequence: 1, bytes: new Uint8Array() }];
  const first = effectOf("one"), second = effectOf("two");
  commit({ effects: [first], outputs: answer("r1") });
  assert.deepEqual([pieces[0]?.open, left], [first.clock, []], "it leaves that open");
  held[0]?.resolve();
  await scene.pass(0); // applied, and not on disk
  commit({ effects: [second], outputs: answer("r2") });
  assert.equal(pieces.length, 2, "at once");
  assert.deepEqual([pieces[1]?.open, left], [first.clock, []]);
  assert.equal(await seenAt(scene, "e2", pieces[1] ?? NO_HEAD), null, "nobody has read it");
  held[1]?.resolve();
  await scene.until(() => left.length === 2);
  assert.ok(store.isDurable);
  commit();
  assert.deepEqual([pieces[2]?.open, pieces[2]?.seen?.applied], [0, 2]);
  assert.equal(
    await seenAt(scene, "e2", pieces[2] ?? NO_HEAD),
    "two",
    "its token covers what it says to be applied",
  );
});

Deno.test("an answer leaves when all that its token names is on disk, also what the next handler has read meanwhile (releases.ts RL5)", async () => {
  const scene = await began();
  const { held, left, commit, read, store } = await running(scene, "e1");
  assert.equal(await read(), null); // the row is held here from now on
  const writer = await scene.attach("e1");
  await scene.pass(100);
  commit({ outputs: [{ to: "r1", sequence: 1, bytes: new Uint8Array() }] });
  await write(scene, writer, "fresh");
  assert.equal(await read(), "fresh");
  held[0]?.resolve();
  await scene.pass(0);
  assert.deepEqual([store.isDurable, left], [false, []], "its token would name what may be lost");
  await scene.until(() => left.length === 1);
  assert.ok(store.isDurable);
});

Deno.test("of a merge, and of a write with a check that has no outcome, a piece says that marks are to be looked for (O2)", async () => {
  const scene = await began();
  const { pieces, held, commit, effectOf } = await running(scene, "e1");
  const sum = { kind: "sum", key: packKey(["kv", "sum"]), value: Uint8Array.of(7) } as const;
  commit({ effects: [{ ...effectOf(""), mutations: [sum] }] });
  assert.equal(pieces.at(-1)?.marks, true);
  held.at(-1)?.resolve();
  await scene.pass(200);
  commit();
  assert.equal(pieces.at(-1)?.marks, false);
  const checked = { call: 9, kind: "commit", bytes: new Uint8Array(), effect: 5 } as const;
  commit({ calls: [checked], isPoint: false, isQuiescent: false });
  assert.deepEqual([pieces.at(-1)?.marks, pieces.at(-1)?.open], [true, 1]);
  commit();
  assert.deepEqual([pieces.at(-1)?.marks, pieces.at(-1)?.open], [false, 0]);
});

const sumKey = packKey(["kv", "sum"]);

/** A log that leaves a sum of 2 to be made, of a home at e1 that died before it made it. */
async function withSum(scene: Scene) {
  const { pieces, commit, read, effectOf } = await running(scene, "e1");
  await read();
  const mutations = [{ kind: "sum", key: sumKey, value: encodeValue(2) }] as const;
  const effects = [{ ...effectOf(""), mutations }];
  commit({ effects });
  await scene.until(() => pieces.length === 1);
  scene.site("e1").crash();
  await scene.pass(1);
  return { head: pieces[0] ?? NO_HEAD, opened: { ...atRest, effects } };
}

async function starts(scene: Scene, site: string): Promise<void> {
  await scene.site(site).start();
  await scene.until(() => scene.process(site).ready);
}

const sumAt = async (scene: Scene, site: string) => {
  const [row] = await scene.done((await ownStore(scene, site)).get([sumKey], "session"));
  return row ? decodeValue(row.value) : null;
};

/** Resolves when e2 is about to tell its parent of a sum, or some time has passed; by then it is on its disk. */
function summing(): { readonly options: SceneOptions; sum(scene: Scene): Promise<void> } {
  let isTold = false;
  const tap: SceneOptions["tap"] = (from, _, message) => {
    isTold ||= from === "e2" && message.kind === "push" && message.rows.some(({ value }) => isMerge(value));
  };
  return {
    options: { tap },
    sum: async (scene) => {
      for (let ms = 0; ms < 1_000 && !isTold; ms++) await scene.pass(1);
    },
  };
}

Deno.test("a home makes a sum again when its own piece is at all owners, and not before (RL4)", async () => {
  const { options, sum } = summing(), scene = await began(options), { head, opened } = await withSum(scene);
  await starts(scene, "e1");
  const second = await opening(scene, "e2", opened, head);
  second.commit(); // its epoch
  await sum(scene); // as no owner has its piece
  scene.site("e2").crash();
  const third = await opening(scene, "e3", opened, head);
  third.commit();
  await scene.until(() => third.pieces.length === 1);
  third.held[0]?.resolve();
  await scene.done(third.started);
  await scene.pass(1_000);
  assert.equal(await sumAt(scene, "root"), 2);
  await starts(scene, "e2");
  await scene.pass(1_000);
  assert.equal(await sumAt(scene, "root"), 2);
});

Deno.test("the piece of a home says all that is known of sums before, so that who is next asks that home alone (RL4)", async () => {
  const { options, sum } = summing(), scene = await began(options), { head, opened } = await withSum(scene);
  const second = await opening(scene, "e2", opened, head);
  second.commit();
  await scene.pass(1_000);
  assert.deepEqual(second.pieces, [], "e1 alone can tell");
  await starts(scene, "e1");
  await scene.until(() => second.pieces.length === 1);
  second.held[0]?.resolve();
  await sum(scene);
  scene.site("e2").crash();
  const third = await opening(scene, "e3", opened, second.pieces[0] ?? NO_HEAD);
  third.commit();
  await scene.pass(1_000);
  assert.deepEqual(third.pieces, [], "e2 alone can tell");
  await starts(scene, "e2");
  await scene.until(() => third.pieces.length === 1);
  third.held[0]?.resolve();
  await scene.done(third.started);
  await scene.pass(1_000);
  assert.equal(await sumAt(scene, "root"), 2);
});

/** After it the store has forgotten what was deleted before. */
const HORIZON_MS = 600;

/** What e1's disk has of a log whose last commit wrote, and of the store without that: power was cut between. */
async function cutBetween(mutate: (scene: Scene) => Promise<unknown>) {
  const scene = await began({ horizonMs: HORIZON_MS });
  await mutate(scene);
  const { commit, effectOf } = await running(scene, "e1");
  const effects = [effectOf("one"), effectOf("two")];
  commit({ effects });
  scene.site("e1").crash();
  await scene.pass(1);
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  return { scene, opened: { ...atRest, sequence: 0, effects } };
}

Deno.test("what a log left to be written is written, however long it was closed (O6)", async () => {
  const { scene, opened } = await cutBetween(async (scene) => {
    const writer = await scene.attach("e2");
    await scene.done(writer.write([{ kind: "set", key: there, value: utf8.encode("before") }]));
    await scene.pass(200);
  });
  await scene.pass(5 * HORIZON_MS);
  const { read } = await running(scene, "e1", opened);
  assert.equal(await read(), "two");
  await scene.pass(500);
  assert.equal(await seenAt(scene, "e2", NO_HEAD), "two");
  const later = await running(scene, "e2", opened); // another home, that finds the same log
  assert.equal(await later.read(), "two");
});

Deno.test("of what a log left to be written, and nothing tells whether it was, it is said that it is not (O6)", async () => {
  const { scene, opened } = await cutBetween(() => Promise.resolve());
  await scene.pass(5 * HORIZON_MS);
  const { read, said } = await running(scene, "e1", opened);
  assert.equal(await read(), null);
  assert.deepEqual(said.map((line) => line.split(" ")[0]), ["error"]);
});

Deno.test("a run owes what its handlers may write for as long as they run, and then what is not applied (releases.ts RL1)", async () => {
  const scene = await began();
  const { run, held, commit, effectOf } = await running(scene, "e1");
  const message = { kind: "request", request: "r1", chain: [], bytes: new Uint8Array() } as const;
  assert.equal(run.owed, Infinity);
  const before = effectOf("before").clock;
  run.deliver(message);
  const { owed } = run;
  assert.ok(owed > before && owed < effectOf("after").clock);
  await scene.pass(1_000);
  assert.equal(run.owed, owed, "its handler runs");
  const effect = { ...effectOf("one"), clock: owed };
  commit({ effects: [effect], through: 1 });
  await scene.pass(1_000);
  assert.equal(run.owed, owed, "it is not applied");
  held[0]?.resolve();
  await scene.pass(500);
  assert.equal(run.owed, Infinity);
});

Deno.test("a piece in the middle of a handler says since when that may have written, and whoever goes on with it owes as much (P3)", async () => {
  const scene = await began();
  const { run, pieces, commit } = await running(scene, "e1");
  run.deliver({ kind: "request", request: "r1", chain: [], bytes: new Uint8Array() });
  const { owed } = run;
  commit({ isPoint: false, isQuiescent: false });
  assert.equal(pieces.at(-1)?.open, owed);
  const next = await running(scene, "e2", { ...atRest, isQuiescent: false, handling: "r1" }, owed);
  assert.equal(next.run.owed, owed);
  next.commit({ isPoint: false, isQuiescent: false });
  assert.equal(next.pieces.at(-1)?.open, owed);
  next.commit();
  assert.deepEqual([next.pieces.at(-1)?.open, next.run.owed], [0, Infinity]);
});
