/** Messages that functions send in one step with rows, on their way from their rows to the queues (runtime/queues/outbox.ts). */
import { strict as assert } from "node:assert";
import { KV_QUEUE } from "../../../functions/queues/kv_queue.ts";
import type { QueuedMessage } from "../../../functions/vocabulary/queue_sender.ts";
import { MessageOutbox } from "../../../runtime/queues/outbox.ts";
import type { SessionMessage } from "../../../functions/sessions/serve/ports.ts";
import type { StoreMutation } from "../../../store/api/api.ts";
import { type Key, packKey, unpackKey } from "../../../store/model/key.ts";
import type { Range } from "../../../store/model/range.ts";
import type { Row } from "../../../store/model/row.ts";
import { World } from "../../sim/world.ts";

const message = (text: string, queue = "jobs"): QueuedMessage => ({
  queue,
  body: new TextEncoder().encode(text),
});

/** A store and queues, and outboxes of processes of sites over them. */
class Scene {
  readonly world = new World();
  readonly rows = new Map<Key, Uint8Array>();
  readonly stored: (SessionMessage & { readonly app: string })[] = [];
  /** Tokens that went with what is stored, in its order. */
  readonly seen: string[] = [];
  readonly notes: string[] = [];
  readonly lost = new Set<string>();
  /** What queues refuse with. */
  refuses: { readonly code: string } | null = null;
  /** An app whose queues refuse nothing. */
  spared = "";
  /** Resolves when what was written is on disk; null: it is. */
  disk: Promise<void> | null = null;

  /** The queues. */
  readonly sends = {
    storeOfSession: (app: string, message: SessionMessage, seen = ""): Promise<void> => {
      if (this.refuses !== null && app !== this.spared) {
        return Promise.reject(Object.assign(new Error("refused"), this.refuses));
      }
      this.stored.push({ ...message, app });
      this.seen.push(seen);
      return Promise.resolve();
    },
  };

  outbox(site: string, boot = "b", isRoot = false): MessageOutbox {
    const { world } = this;
    return new MessageOutbox({
      ...{ site, boot, isRoot },
      store: {
        list: ({ start, end }: Range, { limit = Infinity } = {}) => {
          const keys = [...this.rows.keys()].filter((key) => key >= start && key < end).sort();
          return Promise.resolve(
            keys.slice(0, limit).map((key) => ({ key, value: this.rows.get(key) }) as unknown as Row),
          );
        },
        write: (mutations: readonly StoreMutation[]) => {
          for (const { kind, key } of mutations) if (kind === "delete") this.rows.delete(key);
          return Promise.resolve({ ok: true } as never);
        },
        durable: () => this.disk ?? Promise.resolve(),
      },
      sends: { storeOfSession: (...sent) => this.sends.storeOfSession(...sent) },
      tokenOf: (key) => Promise.resolve(`has seen ${unpackKey(key)[2]}`),
      isLost: (site) => this.lost.has(site),
      nowMs: () => world.nowMs,
      after: (ms, run) => world.after(ms, run),
      note: (event, { why }) => void this.notes.push(`${event} ${why}`),
    });
  }

  /** An app's write with messages; null: the process dies before it goes on. */
  commits(
    outbox: MessageOutbox,
    messages: readonly QueuedMessage[],
    durable: Promise<void> | null,
    app = "app",
  ): void {
    const { mutations, written } = outbox.outgoing(app, messages, () => durable ?? new Promise(() => {}));
    for (const mutation of mutations) {
      if (mutation.kind === "set") this.rows.set(mutation.key, mutation.value);
    }
    written();
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  get texts(): string[] {
    return this.stored.map(({ message: { body } }) => new TextDecoder().decode(body));
  }
}

Deno.test("a message is stored when the rows that it was written with are on disk, and not before; then its row goes (OX1, OX2)", async () => {
  const scene = new Scene(), disk = Promise.withResolvers<void>(), outbox = scene.outbox("a");
  await scene.pass(50);
  const options = { id: "mine", delayMs: 1.5, ttlMs: 9 };
  scene.commits(outbox, [message("one"), { ...message("two", "others"), ...options }], disk.promise);
  await scene.pass(100);
  assert.deepEqual([scene.stored.length, scene.rows.size], [0, 2]);
  disk.resolve();
  await scene.pass(100);
  assert.deepEqual(scene.stored.map(({ app, queue, sentMs }) => [app, queue, sentMs]), [
    ["app", "jobs", 50],
    ["app", "others", 50],
  ]);
  const [one, two] = scene.stored;
  assert.deepEqual(Object.keys(one?.message ?? {}), ["body"]);
  assert.deepEqual({ ...two?.message, body: null }, { body: null, id: "mine", delayMs: 2, ttlMs: 9 });
  assert.equal(scene.rows.size, 0);
});

Deno.test("what a process leaves is stored by the next one, under the name that it had (OX2, OX3)", async () => {
  const scene = new Scene(), first = scene.outbox("a");
  scene.commits(first, [message("left")], null);
  first.close();
  const [key] = scene.rows.keys();
  const disk = Promise.withResolvers<void>();
  scene.disk = disk.promise;
  const second = scene.outbox("a", "c");
  second.begin();
  await scene.pass(100);
  assert.deepEqual(scene.texts, [], "the rows may not be at this site's owners");
  disk.resolve();
  await scene.pass(100);
  assert.deepEqual([scene.texts, scene.rows.size], [["left"], 0]);
  assert.deepEqual(scene.stored.map(({ key, place }) => [key, place]), [[key, 0]]);
  scene.commits(second, [message("new")], Promise.resolve());
  await scene.pass(100);
  assert.equal(new Set(scene.stored.map(({ key }) => key)).size, 2);
});

Deno.test("what a queue has no room for is tried again, and what no queue takes is left out and told (OX2)", async () => {
  const scene = new Scene(), outbox = scene.outbox("a");
  scene.refuses = { code: "queue_full" };
  scene.commits(outbox, [message("waits")], Promise.resolve());
  await scene.pass(5_000);
  assert.deepEqual([scene.rows.size, scene.notes], [1, ["outbox_waits refused"]]);
  scene.refuses = null;
  await scene.pass(10_000);
  assert.deepEqual([scene.texts, scene.rows.size], [["waits"], 0]);
  scene.refuses = { code: "queue_unknown" };
  scene.commits(outbox, [message("no queue")], Promise.resolve());
  await scene.pass(100);
  assert.deepEqual([scene.texts, scene.rows.size, scene.notes.at(-1)], [
    ["waits"],
    0,
    "outbox_left_out refused",
  ]);
});

Deno.test("what was not on the disks of its site's owners in time is looked for again", async () => {
  const scene = new Scene(), outbox = scene.outbox("a");
  scene.commits(outbox, [message("late")], Promise.reject(new Error("owners are away")));
  await scene.pass(5_000);
  assert.deepEqual(scene.texts, []);
  await scene.pass(10_000);
  assert.deepEqual([scene.texts, scene.rows.size], [["late"], 0]);
});

Deno.test("a site deals with its own rows, the root with those of sites that are lost, too (OX4)", async () => {
  const scene = new Scene();
  for (const site of ["a", "b"]) scene.commits(scene.outbox(site), [message(`of ${site}`)], null);
  scene.rows.set(packKey(["q", "a", 7]), new Uint8Array());
  const edge = scene.outbox("c"), root = scene.outbox("root", "r", true);
  edge.begin();
  root.begin();
  await scene.pass(1_000);
  assert.deepEqual(scene.texts, []);
  scene.lost.add("b");
  await scene.pass(15_000);
  assert.deepEqual(scene.texts, ["of b"]);
  for (const one of [edge, root]) one.close();
  assert.equal(scene.rows.size, 2);
});

Deno.test("an app whose queue is full has so many messages on their way, and holds up no other one (OX5)", async () => {
  const scene = new Scene(), outbox = scene.outbox("a");
  scene.refuses = { code: "queue_full" };
  scene.spared = "b";
  const many = (of: string) => Array.from({ length: 600 }, (_, i) => message(`${of} ${i}`));
  for (const app of ["a", "b"]) scene.commits(outbox, many(app), null, app);
  let tried = 0;
  const { storeOfSession } = scene.sends;
  scene.sends.storeOfSession = (app, sent) => {
    if (app === "a") tried++;
    return storeOfSession(app, sent);
  };
  outbox.begin();
  await scene.pass(400); // before anything is tried again
  assert.equal(tried, 256);
  assert.deepEqual([scene.stored.length, scene.rows.size], [600, 600], "all of b");
  scene.refuses = null;
  await scene.pass(20_000);
  assert.deepEqual([scene.stored.length, new Set(scene.texts).size, scene.rows.size], [1_200, 1_200, 0]);
});

Deno.test("with a value of an app's KV goes a token that has seen its row, and with no other message (OX6)", async () => {
  const scene = new Scene(), outbox = scene.outbox("a");
  scene.commits(outbox, [message("value", KV_QUEUE), message("other")], Promise.resolve());
  await scene.pass(100);
  const seen = Object.fromEntries(scene.stored.map(({ queue }, i) => [queue, scene.seen[i]]));
  assert.deepEqual(seen, { [KV_QUEUE]: "has seen app", jobs: "" });
});
