/**
 * What a site that gets another parent depends on of the one before, and of those above that: sessions that came to it,
 * or to a site below it, and needed nothing, since all they saw had arrived there (PROTOCOL N3).
 */
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import type { Message } from "../../../store/wire/message.ts";
import type { Storage } from "../../../store/model/ports.ts";
import { openReplica } from "../../../store/replica.ts";
import { Scene } from "../../sim/scene.ts";

const KEY = 0;

Deno.test("session that comes to a site on its way to another parent reads what it wrote before", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    old: { parent: "root", linkMs: 1 },
    child: { parent: "old", linkMs: 1 },
    next: { parent: "root", linkMs: 20 },
  });
  await scene.start();
  await scene.read(await scene.attach("old"), KEY);
  const writer = await scene.attach("old");
  scene.network.stall("old", "root", Infinity);
  await scene.write(writer, KEY, 1);
  await scene.pass(50);
  // The hello says that nothing is needed; a number from the root takes two trips more.
  scene.site("child").move("next", []);
  await scene.pass(45);
  const before = scene.process("child").replica.status().replica;
  const session = await scene.attach("child", writer.token(false));
  strictEqual(session.how, "nothing");
  strictEqual(scene.process("child").replica.status().replica, before, "it came before the welcome");
  strictEqual(await scene.read(session, KEY), 1);
  await scene.done(session.durable());
  strictEqual(await scene.read(await scene.attach("child", session.token(false)), KEY), 1);
});

/** Four levels; what is below `old` covers nothing of what a session wrote at `old`. */
const DEEP = {
  root: { parent: null, linkMs: 0 },
  old: { parent: "root", linkMs: 1 },
  inner: { parent: "old", linkMs: 1 },
  edge: { parent: "inner", linkMs: 1 },
  next: { parent: "root", linkMs: 1 },
} as const;

async function sawAtOld(): Promise<{ scene: Scene; session: Awaited<ReturnType<Scene["attach"]>> }> {
  const scene = new Scene(DEEP);
  await scene.start();
  await scene.read(await scene.attach("old"), KEY);
  const writer = await scene.attach("old");
  scene.network.stall("old", "root", Infinity);
  await scene.write(writer, KEY, 1);
  await scene.pass(600);
  const session = await scene.attach("edge", writer.token(false));
  strictEqual(session.how, "nothing");
  return { scene, session };
}

Deno.test("session below a site that moves reads what it wrote above that one's old parent (moving.ts M2)", async () => {
  const { scene, session } = await sawAtOld();
  await scene.move("inner", "next");
  strictEqual(await scene.read(session, KEY), 1);
});

Deno.test("session at a site that moves reads what it wrote further up than at the old parent", async () => {
  const { scene, session } = await sawAtOld();
  await scene.move("edge", "next");
  strictEqual(await scene.read(session, KEY), 1);
});

Deno.test("session that comes to an orphan on its way is told what was lost with the old parent", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    old: { parent: "root", linkMs: 1 },
    child: { parent: "old", linkMs: 1 },
    next: { parent: "root", linkMs: 20 },
  });
  await scene.start();
  await scene.read(await scene.attach("old"), KEY);
  const writer = await scene.attach("old");
  scene.network.stall("old", "root", Infinity);
  await scene.write(writer, KEY, 1);
  await scene.pass(50);
  scene.site("old").wipe();
  scene.site("child").move("next", ["old"]);
  await scene.pass(45);
  const { replica } = scene.process("child");
  const before = replica.status().replica;
  const session = await scene.attach("child", writer.token(false));
  const token = session.token(false);
  strictEqual(replica.status().replica, before, "it came before the welcome");
  await rejects(scene.read(session, KEY), { code: "source_lost" });
  await scene.until(() => replica.status().replica !== before);
  await scene.pass(500);
  for (const id of ["child", "next", "root"]) {
    await rejects(scene.attach(id, token), { code: "source_lost" }, id);
  }
});

Deno.test("what a site evicts before its hello is answered its parent does not keep for it", async () => {
  let evicted: Promise<void> | null = null;
  const tap = (from: string, _to: string, message: Message) => {
    if (from !== "child" || message.kind !== "hello" || message.coverage.length < 2) return;
    evicted ??= scene.process("child").replica.evict();
  };
  const scene = new Scene({ root: { parent: null, linkMs: 0 }, child: { parent: "root", linkMs: 10 } }, {
    tap,
  });
  await scene.start();
  await scene.read(await scene.attach("child"), KEY);
  const rangesOf = () => scene.process("root").replica.status().children[0]?.ranges;
  strictEqual(rangesOf(), 2);
  scene.network.partition("child", "root", scene.world.nowMs + 100);
  await scene.pass(1_000);
  strictEqual(evicted !== null, true);
  strictEqual(scene.process("child").replica.status().coverage.ranges, 1);
  strictEqual(rangesOf(), 1);
});

/** Holds reads of ranges at `child` while it is shut. */
class Gate {
  #opened: PromiseWithResolvers<void> | null = null;
  /** A read waits. */
  isWaitedAt = false;

  shut(): void {
    this.#opened = Promise.withResolvers();
  }

  open(): void {
    this.#opened?.resolve();
    this.#opened = null;
  }

  readonly openReplica: typeof openReplica = (config, ports) => {
    if (config.site !== "child") return openReplica(config, ports);
    const { storage } = ports;
    const gated: Storage = {
      load: () => storage.load(),
      get: (key) => storage.get(key),
      getMany: (keys, bytesMax) => storage.getMany(keys, bytesMax),
      scan: async (range, options) => {
        this.isWaitedAt = this.#opened !== null;
        await this.#opened?.promise;
        return await storage.scan(range, options);
      },
      journal: (after, upTo, limit, bytesMax) => storage.journal(after, upTo, limit, bytesMax),
      commit: (commit) => storage.commit(commit),
      bytes: () => storage.bytes(),
      close: () => storage.close(),
    };
    return openReplica(config, { ...ports, storage: gated });
  };
}

const BETWEEN = {
  root: { parent: null, linkMs: 0 },
  old: { parent: "root", linkMs: 1 },
  child: { parent: "old", linkMs: 1 },
  beside: { parent: "old", linkMs: 1 },
  next: { parent: "root", linkMs: 1 },
  third: { parent: "root", linkMs: 1 },
} as const;

Deno.test("welcome of a parent that a site has left before it had taken it is void", async () => {
  const gate = new Gate();
  const given: number[] = [];
  const tap = (from: string, to: string, message: Message) => {
    if (message.kind !== "welcome" || to !== "child" || from !== "next") return;
    given.push(message.replica);
    gate.shut();
  };
  const scene = new Scene(BETWEEN, { tap, open: gate.openReplica });
  await scene.start();
  const { replica } = scene.process("child");
  const { replica: before, counters: { incarnations = 0 } } = replica.status();
  scene.site("child").move("next", []);
  await scene.until(() => gate.isWaitedAt);
  scene.site("child").move("third", []);
  await scene.pass(100);
  strictEqual(replica.status().replica, before);
  gate.open();
  await scene.until(() => replica.status().replica !== before);
  strictEqual(given.length, 1);
  strictEqual(replica.status().counters["incarnations"], incarnations + 1);
  deepStrictEqual([replica.status().parent?.id, replica.status().parent?.connected], ["third", true]);
});

Deno.test("what was carried for a session is not taken under another parent than it was asked for", async () => {
  const gate = new Gate();
  const tap = (from: string, to: string, message: Message) => {
    if (message.kind === "welcome" && to === "child" && from === "next") gate.shut();
  };
  const scene = new Scene(BETWEEN, { tap, open: gate.openReplica });
  await scene.start();
  const CAUSE = 1;
  await scene.pass(600);
  scene.network.stall("old", "root", Infinity);
  scene.network.stall("root", "old", Infinity);
  const writer = await scene.attach("old");
  await scene.write(writer, CAUSE, 1);
  await scene.pass(10);
  const there = await scene.attach("beside", writer.token(false));
  scene.network.stall("beside", "old", scene.world.nowMs + 1_000);
  await scene.write(there, KEY, 2);
  scene.site("child").move("next", []);
  await scene.until(() => gate.isWaitedAt);
  const coming = Promise.resolve(scene.process("child").replica.attach(there.token(false)));
  await scene.pass(100);
  gate.open();
  await scene.pass(100);
  const look = await scene.attach("next");
  strictEqual(await scene.read(look, KEY), null, "not without its cause");
  const session = await scene.done(coming);
  strictEqual(session.how, "carry");
  deepStrictEqual([await scene.read(session, KEY), await scene.read(session, CAUSE)], [2, 1]);
});
