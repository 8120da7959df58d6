/** Who is given messages, and how many (functions/queues/dealer.ts, hand.ts): each side against what the other may do. */
import { strict as assert } from "node:assert";
import { MessageBacklog } from "../../../functions/queues/backlog.ts";
import { Dealer } from "../../../functions/queues/dealer.ts";
import { encodeEnvelope } from "../../../functions/queues/envelope.ts";
import { Hand } from "../../../functions/queues/hand.ts";
import { Leases, type MessageLease } from "../../../functions/queues/leases.ts";
import { QUEUE_DEFAULTS, type QueueSettings } from "../../../functions/queues/settings.ts";
import type { Batch, HandedMessage, OutletWord, OwnerWord, Want } from "../../../functions/queues/words.ts";
import { World } from "../../sim/world.ts";

const payload = encodeEnvelope({
  ...{ id: "", sentMs: 5, trace: "", backoffMs: null, undelivered: new Uint8Array() },
  ...{ format: "bytes", body: new Uint8Array(100) },
});

/** An owner with ready messages. */
class Owner {
  readonly world = new World();
  readonly backlog = new MessageBacklog();
  readonly queue = this.backlog.queue("q");
  readonly leases = new Leases(1);
  readonly told: [site: string, word: OwnerWord][] = [];
  readonly takenBack: number[] = [];
  outlets = ["near", "far"];
  isOpen = true;
  #wants = 0;
  readonly dealer: Dealer = new Dealer({
    site: "own",
    nowMs: () => this.world.nowMs,
    outlets: () => this.outlets,
    rttMs: (site) => site === "near" ? 10 : 100,
    tell: (to, word) => this.told.push([to, word]),
    wake: (atMs) => atMs < Infinity && void this.world.at(atMs, () => this.dealer.tick()),
    isOpen: () => this.isOpen,
    leaseMs: () => 30_000,
    ready: (queue) => this.backlog.count(queue, "ready"),
    lend: (queue, room, { site, isPull }) => {
      const leases: MessageLease[] = [];
      for (let bytes = room.bytes; leases.length < room.messages && bytes > 0; bytes -= payload.length) {
        const slot = this.backlog.take(queue);
        if (slot === null) break;
        leases.push(this.leases.lend({ slot, id: `m${slot}`, queue, to: site, isPull }, 30_000));
      }
      return leases;
    },
    bytesOf: () => payload.length,
    prepare: ({ id, number }) =>
      Promise.resolve({ id, lease: number, attempt: 1, expiresAtMs: 0, owners: ["own"], payload }),
    isLent: (lease) => this.leases.holds(lease),
    takeBack: ({ slot }) => {
      this.takenBack.push(slot);
      this.leases.end(slot);
      this.backlog.ready(slot);
    },
    fail: (error) => {
      throw error;
    },
  });

  /** So many more are ready. */
  async add(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const slot = this.backlog.size(this.queue);
      this.backlog.add(this.queue, slot, payload.length);
      this.backlog.ready(slot);
    }
    this.dealer.deal(this.queue);
    await this.pass(0);
  }

  async want(from: string, messages: number, seen = 0, bytes = 10 ** 6, isPull = false): Promise<void> {
    this.#wants++;
    this.dealer.wants(this.queue, from, {
      ...{ kind: "want", queue: "q", number: this.#wants, isPull, seen, messages, bytes },
    });
    this.dealer.deal(this.queue);
    await this.pass(0);
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  /** What was told since it was asked last: offers by their count, batches by how many they have. */
  news(): string[] {
    return this.told.splice(0).map(([to, word]) =>
      word.kind === "batch"
        ? `${to} gets ${word.messages.length}`
        : word.kind === "offer"
        ? `${to} ${word.count}?`
        : ""
    );
  }
}

Deno.test("the nearest outlet is offered what is ready, and the next one when that wants none in time", async () => {
  const owner = new Owner();
  await owner.add(3);
  assert.deepEqual(owner.news(), ["near 3?"]);
  await owner.pass(59);
  assert.deepEqual(owner.news(), []);
  await owner.pass(2);
  assert.deepEqual(owner.news(), ["far 3?"]);
  await owner.want("far", 2);
  await owner.want("near", 5);
  assert.deepEqual(owner.news(), ["far gets 2", "near gets 1"]);
});

Deno.test("an outlet is sent no more than it wants, by messages and by bytes (DL1)", async () => {
  const owner = new Owner();
  await owner.add(10);
  await owner.want("near", 2);
  owner.news();
  await owner.want("near", 3, 0);
  assert.deepEqual(owner.news(), ["near gets 1"], "what was sent and not seen counts");
  await owner.want("near", 3, 2);
  assert.deepEqual(owner.news(), ["near gets 3"]);
  await owner.want("near", 9, 3, 2 * payload.length);
  assert.deepEqual(owner.news(), ["near gets 2"]);
});

Deno.test("a want that was overtaken by a later one is not heard", async () => {
  const owner = new Owner();
  await owner.add(1);
  await owner.want("near", 1);
  const old: Want = {
    kind: "want",
    queue: "q",
    number: 1,
    seen: 1,
    messages: 9,
    bytes: 10 ** 6,
    isPull: false,
  };
  owner.dealer.wants(owner.queue, "near", old);
  owner.news();
  await owner.add(1);
  assert.deepEqual(owner.news(), ["near 1?"]);
});

Deno.test("a batch that nobody confirms goes again, and is taken back in the end (DL2)", async () => {
  const owner = new Owner();
  await owner.add(2);
  await owner.want("near", 2);
  assert.deepEqual(owner.news(), ["near 2?", "near gets 2"]);
  await owner.pass(2_500);
  assert.deepEqual(owner.news().filter((one) => one.includes("gets")), ["near gets 2", "near gets 2"]);
  assert.deepEqual(owner.takenBack, []);
  await owner.pass(1_000);
  assert.deepEqual(owner.takenBack, [0, 1]);
  owner.news();
  // It has never seen the one that was lost, and has its room still.
  await owner.want("near", 1, 0);
  assert.deepEqual(owner.news().filter((one) => one.includes("gets")), ["near gets 1"]);
});

Deno.test("a batch that is confirmed does not go again", async () => {
  const owner = new Owner();
  await owner.add(2);
  await owner.want("near", 2);
  owner.dealer.got("far", 1);
  owner.dealer.got("near", 1);
  owner.news();
  await owner.pass(5_000);
  assert.deepEqual([owner.news().filter((one) => one.includes("gets")), owner.takenBack], [[], []]);
});

Deno.test("those who were offered some hear when there is none any more, and later of new ones", async () => {
  const owner = new Owner();
  await owner.add(1);
  await owner.pass(61);
  await owner.want("far", 1);
  assert.deepEqual(owner.news(), ["near 1?", "far 1?", "far gets 1"]);
  owner.dealer.got("far", 1);
  await owner.pass(300);
  assert.deepEqual(owner.news(), ["near 0?"]);
  await owner.add(1);
  assert.deepEqual(owner.news(), ["near 1?"]);
});

Deno.test("an outlet whose client waits hears at once that there is none any more, and counts on nothing", async () => {
  const owner = new Owner();
  await owner.add(1);
  await owner.pass(61);
  await owner.want("far", 1);
  owner.news();
  await owner.want("near", 5);
  assert.deepEqual(owner.news(), [], "a handler is told when it has been so for a while");
  await owner.want("near", 5, 0, 10 ** 6, true);
  assert.deepEqual(owner.news(), ["near 0?"]);
  await owner.add(1);
  assert.deepEqual(owner.news(), ["near 1?"], "it is offered what comes, and not sent it");
});

Deno.test("offers are made again, less and less often, while nobody wants anything", async () => {
  const owner = new Owner();
  owner.outlets = ["near"];
  await owner.add(1);
  await owner.pass(40_000);
  const offers = owner.news().length;
  assert.ok(offers >= 5 && offers <= 9, `${offers} offers in 40 s`);
});

Deno.test("a site that is gone has what it confirmed, and what it did not is taken back", async () => {
  const owner = new Owner();
  await owner.add(3);
  await owner.want("near", 1);
  owner.dealer.got("near", 1);
  await owner.want("near", 2, 1);
  owner.dealer.gone("near");
  assert.deepEqual(owner.takenBack, [1, 2]);
});

Deno.test("a queue that is closed offers nothing and gives nothing", async () => {
  const owner = new Owner();
  owner.isOpen = false;
  await owner.add(2);
  await owner.want("near", 2);
  assert.deepEqual(owner.news(), []);
});

/** Consumers of one queue, and what they say to owners. */
class Consumers {
  readonly world = new World();
  settings: QueueSettings = { ...QUEUE_DEFAULTS, concurrency: 2, batchMax: 3 };
  readonly wants: [site: string, want: Want][] = [];
  readonly said: string[] = [];
  readonly hand: Hand = new Hand({
    queue: "q",
    nowMs: () => this.world.nowMs,
    wallMs: () => this.world.nowMs,
    settings: () => this.settings,
    tell: (to, word: OutletWord) => word.kind === "want" && void this.wants.push([to, word]),
    say: ({ id }, { kind }) => {
      this.said.push(`${kind} ${id}`);
      return Promise.resolve("done");
    },
    wake: (atMs) => atMs < Infinity && void this.world.at(atMs, () => this.hand.tick()),
    bytesLeft: () => 10 ** 9,
    malformed: ({ id }) => void this.said.push(`malformed ${id}`),
    fail: (error) => {
      throw error;
    },
  });

  batch(number: number, ids: readonly string[], left = 0): Batch {
    const messages = ids.map((id): HandedMessage => ({
      ...{ id, lease: 1, attempt: 1, expiresAtMs: 0, owners: ["a"], payload },
    }));
    return { kind: "batch", queue: "q", number, left, leaseMs: 1_000, messages };
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  async news(): Promise<string[]> {
    await this.pass(0);
    return this.wants.splice(0).map(([site, { messages, seen }]) => `${site} ${messages} after ${seen}`);
  }
}

Deno.test("an outlet wants as much as its handlers take soon, of each owner its part (HD1)", async () => {
  const at = new Consumers();
  at.hand.offered("a", 100);
  assert.deepEqual(await at.news(), [], "nobody is there who would take it");
  at.hand.serve(() => new Promise(() => {}));
  assert.deepEqual(await at.news(), ["a 9 after 0"]);
  at.hand.offered("b", 100);
  assert.deepEqual(await at.news(), [], "all room is promised");
  at.hand.came("a", at.batch(4, ["1", "2", "3", "4", "5", "6"], 90));
  assert.deepEqual(await at.news(), [], "two batches run, and the room of a third is promised");
  assert.equal(at.hand.size, 6);
});

Deno.test("an owner that was not heard for a while is asked for what comes after what was seen of it", async () => {
  const at = new Consumers();
  at.hand.serve((messages) => Promise.resolve(messages.map(() => ({ kind: "ack", ms: null, error: "" }))));
  at.hand.offered("a", 1);
  await at.news();
  at.hand.came("a", at.batch(7, ["1"]));
  at.hand.gone("a");
  at.hand.offered("a", 1);
  assert.deepEqual(await at.news(), ["a 1 after 7"]);
  at.hand.began("a");
  at.hand.offered("a", 1);
  assert.deepEqual(await at.news(), ["a 1 after 0"]);
});

Deno.test("room that was promised to an owner that sends nothing is another's after a while", async () => {
  const at = new Consumers();
  at.hand.serve(() => new Promise(() => {}));
  at.hand.offered("a", 100);
  await at.news();
  at.hand.offered("b", 100);
  await at.pass(4_000);
  assert.deepEqual(await at.news(), []);
  await at.pass(1_100);
  assert.deepEqual(await at.news(), ["b 9 after 0"]);
});

Deno.test("what waits is lent anew in time, and what a handler has is not (HD2)", async () => {
  const at = new Consumers();
  at.settings = { ...at.settings, concurrency: 1, batchMax: 1 };
  at.hand.serve(() => new Promise(() => {}));
  at.hand.came("a", at.batch(1, ["1", "2"]));
  await at.pass(3_200);
  assert.deepEqual(at.said.filter((one) => one.endsWith(" 1")), []);
  assert.deepEqual(at.said.filter((one) => one === "extend 2").length, 6);
});

Deno.test("a handler that takes nothing is let alone for a while", async () => {
  const at = new Consumers();
  let times = 0;
  at.hand.serve((messages) => {
    times++;
    return Promise.resolve(messages.map(() => ({ kind: "release", ms: null, error: "" })));
  });
  at.hand.came("a", at.batch(1, ["1"]));
  await at.pass(100);
  at.hand.offered("a", 1);
  assert.deepEqual([await at.news(), at.said, times], [[], ["release 1"], 1]);
  await at.pass(1_000);
  assert.deepEqual(await at.news(), ["a 1 after 1"]);
});

Deno.test("a rate is one for wants as for deliveries", async () => {
  const at = new Consumers();
  at.settings = { ...at.settings, perSecond: 2 };
  at.hand.serve((messages) => Promise.resolve(messages.map(() => ({ kind: "ack", ms: null, error: "" }))));
  at.hand.wakeUp();
  await at.pass(3_000);
  at.hand.offered("a", 100);
  assert.deepEqual(await at.news(), ["a 2 after 0"]);
  at.hand.came("a", at.batch(1, ["1", "2"], 98));
  assert.deepEqual(await at.news(), []);
  await at.pass(600);
  assert.deepEqual(await at.news(), ["a 1 after 1"]);
});

Deno.test("bytes that are no message go back to who owns them", async () => {
  const at = new Consumers();
  at.hand.serve(() => new Promise(() => {}));
  const batch = at.batch(1, ["1"]);
  at.hand.came("a", {
    ...batch,
    messages: batch.messages.map((one) => ({ ...one, payload: new Uint8Array(3) })),
  });
  await at.pass(10);
  assert.deepEqual([at.said, at.hand.size], [["malformed 1"], 0]);
});
