/** What a parent that adopts a site asks of others, over slow lines (store/change/adoption.ts F2). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Adoptions } from "../../../store/change/adoption.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { Least } from "../../../store/model/least.ts";
import { type ChildHello, decodeMessage, type Message } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { Scene } from "../../sim/scene.ts";
import { START_MS, World } from "../../sim/world.ts";

const NEW = 5, OLD = 6;
const MIB = 1 << 20;
const key = (i: number): Key => packKey(["row", i]);

/** A new parent that asks an old one, over a line of so many bytes a millisecond. */
class Adoption {
  readonly world = new World();
  readonly adopting: Adoptions;
  readonly asked: Adoptions;
  readonly mine: Core;
  readonly old: Core;
  readonly child: Child;
  /** Messages that went to the old parent, and that came from there. */
  questions = 0;
  messages = 0;
  isReady = false;
  readonly failures: string[] = [];
  /** Changes an answer on its way. */
  changes = (message: Message): Message => message;
  #freeMs = 0;

  constructor(bytesPerMs: number) {
    const { world } = this;
    this.mine = this.#coreOf("new", NEW, (_, message) => {
      if (message.kind !== "gather") return Promise.resolve();
      this.questions++;
      world.after(5, () => void this.asked.asked("new", message));
      return Promise.resolve();
    });
    this.old = this.#coreOf("old", OLD, (_, message, bytes) => {
      this.#freeMs = Math.max(this.#freeMs, world.nowMs) + bytes / bytesPerMs;
      world.at(this.#freeMs, () => {
        this.messages++;
        if (message.kind === "gathered") {
          this.adopting.answered("old", this.changes(message) as typeof message);
        }
      });
      const waitMs = this.#freeMs - world.nowMs - MIB / bytesPerMs;
      return waitMs <= 0 ? Promise.resolve() : world.sleep(waitMs);
    });
    const host = { durable: () => world.sleep(1), ready: () => void (this.isReady = true) };
    this.adopting = new Adoptions(this.mine, host);
    this.asked = new Adoptions(this.old, host);
    this.child = new Child("e", 0, { stables: new Least<Child>(), floors: new Least<Child>() });
    this.child.connected = true;
  }

  #coreOf(
    site: SiteId,
    replica: number,
    send: (to: SiteId, message: Message, bytes: number) => Promise<void>,
  ): Core {
    const { world } = this;
    const core = new Core(
      { site, parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
      {
        clock: {
          nowMs: () => START_MS + world.nowMs,
          steadyMs: () => START_MS + world.nowMs,
          after: (ms, callback) => world.after(ms, callback),
          turn: () => world.sleep(0),
        },
        random: { bytes: (length) => new Uint8Array(length) },
        storage: new MemoryStorage(),
        network: { send: (to, bytes) => send(to, decodeMessage(bytes), bytes.length) },
        fatal: (error) => void this.failures.push(error.message),
        note: () => {},
      },
    );
    core.replica = replica;
    core.setPath(["root"]);
    return core;
  }

  /** Rows that only the old parent has. */
  write(rows: number, bytes: number): void {
    for (let i = 0; i < rows; i++) this.old.rows.put(this.old.own(key(i), new Uint8Array(bytes)));
  }

  /** @param isReady whether the child may be answered at once. */
  begin(isReady = false): void {
    const hello: ChildHello = {
      kind: "hello",
      attempt: 1,
      replica: 7,
      parentReplica: OLD,
      cursor: 0,
      clock: 0,
      tier: "edge",
      url: "",
      linkAddress: "",
      coverage: [],
      moved: { floor: 0, from: "old", siblings: [], lost: [] },
    };
    assert.equal(this.adopting.isReady(this.child, hello), isReady);
  }

  async has(rows: number): Promise<number> {
    const found = await this.mine.rows.lookup(Array.from({ length: rows }, (_, i) => key(i)));
    return found.filter((row) => row !== undefined).length;
  }
}

Deno.test("a site is adopted with all that its old parent has, over a line that takes long for it", async () => {
  const adoption = new Adoption(1_000);
  adoption.write(8, MIB);
  adoption.begin();
  await adoption.world.run(60_000, () => adoption.isReady);
  assert.equal(adoption.isReady, true);
  assert.equal(await adoption.has(8), 8);
  assert.ok(adoption.messages < 12, `${adoption.messages} messages of 1 MiB for 8`);
});

Deno.test("an old parent that does not answer is asked again", async () => {
  const adoption = new Adoption(Infinity);
  adoption.write(3, 10);
  adoption.old.resyncing = true;
  adoption.begin();
  await adoption.world.run(20_000);
  assert.equal(adoption.isReady, false);
  assert.deepEqual(adoption.adopting.waiting, [{ child: "e", waitsFor: ["old"], forMs: 20_000 }]);
  adoption.old.resyncing = false;
  await adoption.world.run(60_000, () => adoption.isReady);
  assert.deepEqual([adoption.isReady, await adoption.has(3)], [true, 3]);
});

Deno.test("a new parent whose disk fails as it takes in what it asked for stops, and says why", async () => {
  for (const closed of [false, true]) {
    const adoption = new Adoption(Infinity);
    adoption.write(3, 10);
    adoption.mine.ports.storage.getMany = () => {
      adoption.mine.closed = closed;
      return Promise.reject(new Error("the disk is gone"));
    };
    adoption.begin();
    await adoption.world.run(5_000);
    assert.deepEqual([adoption.isReady, adoption.failures], [false, closed ? [] : ["the disk is gone"]]);
  }
});

Deno.test("a child that was taken in while its new parent resynced is waited for no more", async () => {
  const adoption = new Adoption(Infinity);
  adoption.mine.resyncing = true;
  adoption.begin(true);
  adoption.mine.resyncing = false;
  await adoption.world.run(5_000);
  assert.deepEqual([adoption.adopting.waiting, adoption.questions], [[], 0]);
});

Deno.test("nobody is asked for a child that has left", async () => {
  const adoption = new Adoption(Infinity);
  adoption.old.resyncing = true;
  adoption.begin();
  await adoption.world.run(5_000);
  const { questions } = adoption;
  assert.ok(questions > 1);
  adoption.child.connected = false;
  assert.deepEqual(adoption.adopting.waiting, []);
  await adoption.world.run(60_000);
  assert.equal(adoption.questions, questions);
});

Deno.test("an answer of which a part is refused, since its clock is wrong, counts for nothing", async () => {
  const adoption = new Adoption(Infinity);
  adoption.write(3, MIB);
  let isWrong = true;
  adoption.changes = (message) => {
    if (message.kind !== "gathered" || !isWrong) return message;
    isWrong = false;
    return { ...message, clock: 2 ** 52 };
  };
  adoption.begin();
  await adoption.world.run(20_000, () => adoption.isReady);
  assert.deepEqual([adoption.isReady, await adoption.has(3)], [true, 3]);
});

Deno.test("a site is adopted with what only a site above its old parent has, and what it was fed depends on", async () => {
  const asked: string[] = [];
  const scene = new Scene({
    root: { parent: null, linkMs: 1 },
    top: { parent: "root", linkMs: 1 },
    old: { parent: "top", linkMs: 1 },
    new: { parent: "root", linkMs: 1 },
    e: { parent: "old", linkMs: 1 },
  }, { tap: (_, to, message) => void (message.kind === "gather" && asked.push(to)) });
  await scene.start();
  const writer = await scene.attach("top");
  for (const key of [0, 1]) await scene.read(writer, key);
  await scene.read(await scene.attach("e"), 1);
  scene.network.stall("top", "root", scene.world.nowMs + 10_000);
  await scene.write(writer, 0, 1);
  await scene.write(writer, 1, 2);
  await scene.pass(20);
  const before = await scene.attach("e");
  assert.equal(
    await scene.read(before, 1),
    2,
    "the effect has come down; its cause is covered at `top` only",
  );
  await scene.move("e", "new");
  const after = await scene.attach("e", before.token(false));
  assert.deepEqual([await scene.read(after, 1), await scene.read(after, 0)], [2, 1]);
  assert.deepEqual([...new Set(asked)], ["old", "top"], "bottom-up, and not the root");
});

Deno.test("a site is adopted with what stands above its old parent, which has moved, as the new one does not know", async () => {
  /** Of whom `second` has asked for a number. */
  const asked: string[] = [];
  const scene = new Scene({
    root: { parent: null, linkMs: 1 },
    first: { parent: "root", linkMs: 1 },
    second: { parent: "root", linkMs: 1 },
    old: { parent: "first", linkMs: 1 },
    new: { parent: "root", linkMs: 1 },
    e: { parent: "old", linkMs: 1 },
  }, {
    tap: (from, _, message) =>
      void (from === "second" && message.kind === "number" && asked.push(message.claim?.site ?? "")),
  });
  await scene.start();
  asked.length = 0;
  const writer = await scene.attach("second");
  for (const key of [0, 1]) await scene.read(writer, key);
  // What it is fed from now on reaches it no more: it knows the old parent as it was.
  const seen = await scene.attach("e");
  await scene.write(seen, 2, 1);
  scene.network.partition("e", "old", Infinity);
  scene.site("old").move("second", []);
  // The root gives a number; who took it, `second` has not said when its way is cut.
  await scene.until(() => asked.length > 0);
  await scene.pass(1);
  scene.network.stall("second", "root", scene.world.nowMs + 20_000);
  await scene.until(() => scene.process("old").replica.status().parent?.connected === true);
  await scene.read(await scene.attach("old"), 1);
  await scene.write(writer, 0, 1);
  await scene.write(writer, 1, 2);
  await scene.pass(100);
  await scene.move("e", "new");
  const after = await scene.attach("new");
  const effect = await scene.read(after, 1);
  assert.deepEqual([effect, await scene.read(after, 0)], [2, 1]);
});
