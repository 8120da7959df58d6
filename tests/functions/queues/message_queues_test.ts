/** Producers, consumers and operators of one site's queues, over tuples on its disk (functions/queues/). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { type NewMessage, QueueRefused, type StoredMessage } from "../../../functions/queues/broker.ts";
import type { DeliveryOutcome, MessageDelivery } from "../../../functions/queues/hand.ts";
import { QUEUE_MESSAGE_BYTES_MAX } from "../../../functions/queues/limits.ts";
import { QUEUE_DEFAULTS, type QueueSettings } from "../../../functions/queues/settings.ts";
import { MessageQueues } from "../../../functions/queues/message_queues.ts";
import { Tuples } from "../../../store/owners/tuples.ts";
import { World } from "../../sim/world.ts";

const ACK: DeliveryOutcome = { kind: "ack", ms: null, error: "" };
const body = (text: string) => new TextEncoder().encode(text);
const textOf = ({ envelope }: MessageDelivery) => new TextDecoder().decode(envelope.body);

/** A site that is alone. */
class Alone {
  readonly world = new World();
  readonly settings = new Map<string, Partial<QueueSettings>>();
  readonly undelivered: StoredMessage[] = [];
  readonly storage = new MemoryStorage();
  queues: MessageQueues = this.#made(1);
  #tuples: Tuples | null = null;

  #made(boot: number): MessageQueues {
    const { world } = this;
    return new MessageQueues({
      site: "a",
      boot,
      clock: this.#clock(),
      wallMs: () => world.nowMs,
      random: () => 0,
      settings: (queue) => {
        const own = this.settings.get(queue);
        return own === undefined ? undefined : { ...QUEUE_DEFAULTS, f: 0, ...own };
      },
      outlets: () => ["a"],
      rttMs: () => 0,
      isHeard: () => true,
      send: () => Promise.resolve(),
      tupleIdOf: (queue, id) => `${queue}/${id}`,
      undelivered: (_, message) => {
        if (message.envelope.undelivered.length === 0) return Promise.resolve(false);
        this.undelivered.push(message);
        return Promise.resolve(true);
      },
      note: () => {},
      fail: (error) => {
        throw error;
      },
    });
  }

  #clock() {
    const { world } = this;
    return {
      nowMs: () => world.nowMs,
      steadyMs: () => world.nowMs,
      after: (ms: number, run: () => void) => world.after(ms, run),
      turn: () => world.sleep(0),
    };
  }

  /** A process begins, perhaps not the first one. */
  async start(boot = 1): Promise<void> {
    const { world } = this;
    this.queues = this.#made(boot);
    this.#tuples = await Tuples.open({
      site: "a",
      boot,
      clock: this.#clock(),
      nowMs: () => world.nowMs,
      wallMs: () => world.nowMs,
      storage: this.storage,
      send: () => Promise.resolve(),
      fellows: {
        choose: () => ({ owners: ["a"], missing: 0 }),
        isKnown: () => true,
        isStranger: () => false,
        standing: () => "alive",
        awaitedUntilMs: () => null,
        isInTouch: () => true,
        suspectMs: () => 2_000,
        watch: () => () => {},
        measured: () => {},
        onChange: () => () => {},
      },
      refused: () => {},
      fatal: (error) => {
        throw error;
      },
    }, this.queues.broker);
    this.queues.begin(this.#tuples);
    await this.pass(10);
  }

  async stop(): Promise<void> {
    this.queues.close();
    await this.#tuples?.close();
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.nowMs + ms);
  }

  async send(queue: string, text: string, more: Partial<NewMessage> = {}): Promise<string> {
    const sent = this.queues.broker.send(queue, { body: body(text), ...more });
    await this.pass(1);
    return await sent;
  }

  status(queue: string) {
    const found = this.queues.broker.status().find((one) => one.queue === queue);
    if (found === undefined) throw new Error(`there is no queue ${queue}`);
    const { ready, delayed, dead, lent } = found;
    return { ready, delayed, dead, lent };
  }
}

const EMPTY = { ready: 0, delayed: 0, dead: 0, lent: 0 };
const refused = (code: string) => (error: unknown) => error instanceof QueueRefused && error.code === code;

async function started(queues: Record<string, Partial<QueueSettings>>): Promise<Alone> {
  const site = new Alone();
  for (const [name, settings] of Object.entries(queues)) site.settings.set(name, settings);
  await site.start();
  return site;
}

Deno.test("a message goes to a handler at once, or when it is due, and is gone when that is done with it", async () => {
  const site = await started({ q: {} }), had: [string, number][] = [];
  site.queues.outlet.serve("q", (messages) => {
    for (const one of messages) had.push([textOf(one), site.world.nowMs]);
    return Promise.resolve(messages.map(() => ACK));
  });
  await site.send("q", "now");
  const sentMs = site.world.nowMs;
  await site.send("q", "later", { delayMs: 700 });
  await site.pass(650);
  assert.deepEqual(had.map(([text]) => text), ["now"]);
  await site.pass(400);
  assert.equal(had[1]?.[0], "later");
  assert.ok((had[1]?.[1] ?? 0) >= sentMs + 700);
  assert.deepEqual(site.status("q"), EMPTY);
});

Deno.test("bad messages, and those to no queue or to a full one, are refused with a code and change nothing", async () => {
  const site = await started({ q: { messagesMax: 2 }, bytes: { bytesMax: 100 } });
  const rows: [string, Partial<NewMessage>, string][] = [
    ["none", {}, "queue_unknown"],
    ["q", { id: "" }, "message_invalid"],
    ["q", { id: "x".repeat(201) }, "message_invalid"],
    ["q", { id: "\ud800" }, "message_invalid"],
    ["q", { delayMs: -1 }, "message_invalid"],
    ["q", { delayMs: NaN }, "message_invalid"],
    ["q", { ttlMs: 0 }, "message_invalid"],
    ["q", { backoffMs: [1.5] }, "message_invalid"],
    ["q", { body: new Uint8Array(QUEUE_MESSAGE_BYTES_MAX + 1) }, "limit_message"],
    ["q", { undelivered: new Uint8Array(20_000) }, "limit_message"],
    ["bytes", { body: new Uint8Array(101) }, "queue_full"],
  ];
  for (const [queue, more, code] of rows) {
    await assert.rejects(site.queues.broker.send(queue, { body: body("x"), ...more }), refused(code), code);
  }
  await site.send("q", "1");
  await site.send("q", "2");
  await assert.rejects(site.queues.broker.send("q", { body: body("3") }), refused("queue_full"));
  assert.deepEqual(site.status("q"), { ...EMPTY, ready: 2 });
});

Deno.test("an id is stored once as long as its queue says", async () => {
  const site = await started({ q: { dedupeMs: 2_000 } }), had: string[] = [];
  site.queues.outlet.serve("q", (messages) => {
    had.push(...messages.map(textOf));
    return Promise.resolve(messages.map(() => ACK));
  });
  assert.equal(await site.send("q", "first", { id: "i" }), "i");
  await site.pass(500);
  assert.equal(await site.send("q", "again", { id: "i" }), "i");
  await site.pass(4_000);
  await site.send("q", "much later", { id: "i" });
  await site.pass(100);
  assert.deepEqual(had, ["first", "much later"]);
});

Deno.test("a message with a tuple's id of its own is stored once, for as long as ids are by default at least", async () => {
  const site = await started({ q: { dedupeMs: 0 } }), had: [string, string][] = [];
  site.queues.outlet.serve("q", (messages) => {
    for (const one of messages) had.push([textOf(one), one.ticket.id]);
    return Promise.resolve(messages.map(() => ACK));
  });
  assert.equal(await site.send("q", "first", { tuple: "~t" }), "~t");
  await site.pass(QUEUE_DEFAULTS.dedupeMs - 10_000);
  await site.send("q", "again", { tuple: "~t" });
  await site.pass(20_000);
  await site.send("q", "much later", { tuple: "~t" });
  await site.pass(100);
  assert.deepEqual(had, [["first", "~t"], ["much later", "~t"]], "its consumer knows it by that id");
});

Deno.test("a message that is here already is stored also where its queue is full", async () => {
  const site = await started({ q: { messagesMax: 1 } });
  await site.send("q", "x", { tuple: "~t" });
  assert.equal(await site.send("q", "x", { tuple: "~t" }), "~t");
  await assert.rejects(site.queues.broker.send("q", { body: body("y") }), refused("queue_full"));
  assert.deepEqual(site.status("q"), { ...EMPTY, ready: 1 });
});

Deno.test("the times of a message that was sent a while ago count from there, and none is sent in the future", async () => {
  const site = await started({ q: {} }), had: [string, number, number][] = [];
  await site.pass(10_000);
  const { nowMs } = site.world;
  site.queues.outlet.serve("q", (messages) => {
    for (const one of messages) had.push([textOf(one), one.envelope.sentMs, site.world.nowMs - nowMs]);
    return Promise.resolve(messages.map(() => ACK));
  });
  await site.send("q", "due", { sentMs: nowMs - 5_000, delayMs: 4_000 });
  await site.send("q", "not due", { sentMs: nowMs - 5_000, delayMs: 6_000 });
  await site.send("q", "over", { sentMs: nowMs - 5_000, ttlMs: 4_000 });
  await site.send("q", "ahead", { sentMs: nowMs + 50_000, delayMs: 100 });
  await site.pass(3_000);
  const [due, ahead, notDue, ...more] = had;
  assert.deepEqual([due?.[0], due?.[1], more.length], ["due", Math.floor(nowMs - 5_000), 0]);
  assert.ok(ahead?.[0] === "ahead" && ahead[1] <= nowMs + 10, JSON.stringify(ahead));
  assert.ok(notDue?.[0] === "not due" && notDue[2] >= 1_000, JSON.stringify(notDue));
  assert.deepEqual(site.status("q"), { ...EMPTY, dead: 1 });
});

Deno.test("a consumer that always fails gets a message with growing pauses, as often as its queue says", async () => {
  const site = await started({ q: { maxAttempts: 4, retry: { minMs: 100, maxMs: 300 } } });
  const had: [number, number][] = [];
  site.queues.outlet.serve("q", (messages) => {
    for (const { attempt } of messages) had.push([attempt, site.world.nowMs]);
    return Promise.reject(new Error("it does not work"));
  });
  await site.send("q", "x");
  await site.pass(10_000);
  assert.deepEqual(had.map(([attempt]) => attempt), [1, 2, 3, 4]);
  const pauses = had.slice(1).map(([, atMs], i) => atMs - (had[i]?.[1] ?? 0));
  for (const [i, least] of [100, 200, 300].entries()) {
    assert.ok((pauses[i] ?? 0) >= least && (pauses[i] ?? 0) < least + 10, `${pauses}`);
  }
  const [dead] = await site.queues.broker.list("q", "dead", { limit: 5 });
  assert.deepEqual(dead?.death, { cause: "attempts", error: "it does not work" });
  assert.equal(dead?.attempts, 4);
  site.queues.outlet.serve("q", (messages) => Promise.resolve(messages.map(() => ACK)));
  const driven = site.queues.broker.redrive("q");
  await site.pass(100);
  assert.equal(await driven, 1);
  assert.deepEqual(site.status("q"), EMPTY);
});

Deno.test("a handler that never answers costs its queue a lease and a place, and other queues nothing", async () => {
  const site = await started({ hangs: { leaseMs: 1_000, concurrency: 1, batchMax: 1 }, q: {} });
  const hung: string[] = [], had: number[] = [];
  site.queues.outlet.serve("hangs", (messages) => {
    hung.push(...messages.map(textOf));
    return new Promise(() => {});
  });
  site.queues.outlet.serve("q", (messages) => {
    had.push(site.world.nowMs);
    return Promise.resolve(messages.map(() => ACK));
  });
  for (let i = 0; i < 20; i++) await site.send("hangs", `${i}`);
  for (let i = 0; i < 20; i++) {
    const sentMs = site.world.nowMs;
    await site.send("q", "x");
    await site.pass(200);
    assert.ok((had[i] ?? Infinity) <= sentMs + 5, `${i}`);
  }
  assert.deepEqual(hung, ["0"], "its one place is taken");
  assert.equal(
    Object.values(site.status("hangs")).reduce((sum, count) => sum + count),
    20,
    "nothing is lost",
  );
});

Deno.test("a message is said to be done while others of its batch run, and holds whatever becomes of these", async () => {
  const site = await started({ q: { leaseMs: 500, retry: { eachMs: [10] }, batchWaitMs: 50 } }),
    had: string[] = [];
  site.queues.outlet.serve("q", (messages, say) => {
    had.push(...messages.map(textOf));
    messages.forEach((one, place) => textOf(one) === "good" && say(place, ACK));
    return Promise.reject(new Error("no"));
  });
  for (const text of ["good", "bad"]) void site.queues.broker.send("q", { body: body(text) });
  await site.pass(3_000);
  assert.equal(had.filter((text) => text === "good").length, 1);
  assert.equal(had.filter((text) => text === "bad").length, 5);
});

Deno.test("a client pulls what there is, has it for its time, and may take longer", async () => {
  const site = await started({ q: { leaseMs: 1_000, retry: { eachMs: [0] } } }), { outlet } = site.queues;
  const nothing = outlet.pull("q", { messages: 5, waitMs: 200 });
  await site.pass(250);
  assert.deepEqual(await nothing, []);
  const waiting = outlet.pull("q", { messages: 5, waitMs: 10_000 });
  await site.send("q", "x");
  await site.pass(10);
  const [one] = await waiting;
  if (one === undefined) throw new Error("nothing was pulled");
  await site.pass(900);
  const longer = outlet.say(one.ticket, { kind: "extend", ms: 5_000, error: "" });
  await site.pass(10);
  assert.equal(await longer, "done");
  await site.pass(4_000);
  assert.deepEqual(site.status("q"), { ...EMPTY, lent: 1 });
  await site.pass(1_500);
  assert.deepEqual(site.status("q"), { ...EMPTY, ready: 1 });
  const late = outlet.say(one.ticket, { kind: "retry", ms: null, error: "" });
  await site.pass(10);
  assert.equal(await late, "over");
  const done = outlet.say(one.ticket, ACK);
  await site.pass(10);
  assert.equal(await done, "done");
  assert.deepEqual(site.status("q"), EMPTY, "Q5");
});

Deno.test("a pull that finds nothing ends in its time, whatever ends before it", async () => {
  const site = await started({ q: {}, other: {} }), { outlet } = site.queues, ended: string[] = [];
  for (const [queue, waitMs] of [["q", 4_500], ["q", 1_000], ["other", 3_000]] as const) {
    void outlet.pull(queue, { messages: 1, waitMs }).then(() => ended.push(`${queue} ${waitMs}`));
  }
  for (const [place, passed] of [1_010, 2_000, 1_500].entries()) {
    await site.pass(passed);
    assert.equal(ended.length, place + 1);
  }
  assert.deepEqual(ended, ["q 1000", "other 3000", "q 4500"]);
});

Deno.test("an acknowledgement of what was sent before under the same id is not one of what is there (EN1)", async () => {
  const site = await started({ q: { dedupeMs: 0, leaseMs: 1_000 } }), { outlet } = site.queues;
  await site.send("q", "first", { id: "i" });
  const pulled = outlet.pull("q", { messages: 1, waitMs: 100 });
  await site.pass(10);
  const [first] = await pulled;
  if (first === undefined) throw new Error("nothing was pulled");
  void outlet.say(first.ticket, ACK);
  // Ids are known by the second.
  await site.pass(2_000);
  await site.send("q", "second", { id: "i" });
  const said = outlet.say(first.ticket, ACK);
  await site.pass(10);
  assert.equal(await said, "over");
  assert.deepEqual(site.status("q"), { ...EMPTY, ready: 1 });
});

Deno.test("what nobody pulls any more goes back, and was no attempt (HD3)", async () => {
  const site = await started({ q: { perSecond: 1, leaseMs: 60_000 } }), { outlet } = site.queues;
  const pulls = [outlet.pull("q", { messages: 1, waitMs: 50 })];
  await site.pass(60);
  pulls.push(outlet.pull("q", { messages: 1, waitMs: 1 }));
  await site.send("q", "x");
  await site.pass(5_000);
  const again = outlet.pull("q", { messages: 1, waitMs: 5_000 });
  await site.pass(5_000);
  const had = [...(await Promise.all(pulls)).flat(), ...await again];
  assert.deepEqual(had.map(({ attempt }) => attempt), [1]);
});

Deno.test("what expires is given up, where it waits as at an outlet, and nothing is done with it", async () => {
  const site = await started({ q: { concurrency: 1, batchMax: 1 } }), had: string[] = [];
  site.queues.outlet.serve("q", async (messages) => {
    had.push(...messages.map(textOf));
    await site.world.sleep(1_000);
    return messages.map(() => ACK);
  });
  for (const text of ["1", "2", "3", "4"]) await site.send("q", text, text === "1" ? {} : { ttlMs: 500 });
  await site.pass(3_000);
  assert.deepEqual(had, ["1"]);
  const dead = await site.queues.broker.list("q", "dead", { limit: 5 });
  assert.deepEqual(dead.map(({ death }) => death?.cause), ["expired", "expired", "expired"]);
});

Deno.test("a queue that is paused gives out nothing, and one that is purged loses what was sent before", async () => {
  const site = await started({ q: { isPaused: true } }), had: string[] = [];
  site.queues.outlet.serve("q", (messages) => {
    had.push(...messages.map(textOf));
    return Promise.resolve(messages.map(() => ACK));
  });
  await site.send("q", "old");
  await site.pass(3_000);
  const purgedBeforeMs = site.world.nowMs;
  await site.send("q", "new");
  assert.deepEqual(had, []);
  site.settings.set("q", { isPaused: false, purgedBeforeMs });
  void site.queues.configured("q");
  await site.pass(100);
  assert.deepEqual(had, ["new"]);
  assert.deepEqual(site.status("q"), EMPTY);
});

Deno.test("attempts are known after a restart, and one that ends its process each time comes to its end (Q3)", async () => {
  const site = await started({ q: { maxAttempts: 3 } }), attempts: number[] = [];
  const kills = () =>
    site.queues.outlet.serve("q", (messages) => {
      attempts.push(...messages.map(({ attempt }) => attempt));
      return new Promise(() => {});
    });
  kills();
  await site.send("q", "x");
  for (let boot = 2; boot < 9; boot++) {
    await site.pass(50);
    await site.stop();
    await site.start(boot);
    kills();
  }
  assert.deepEqual(attempts, [1, 1, 2, 3]);
  assert.deepEqual(site.status("q"), { ...EMPTY, dead: 1 });
});

Deno.test("a queue that hands over what is dead tells its app, and keeps nothing", async () => {
  const site = await started({ q: { maxAttempts: 1, whenDead: "hand over" } });
  site.queues.outlet.serve("q", () => Promise.reject(new Error("no")));
  await site.send("q", "x", { undelivered: body("keys") });
  await site.pass(500);
  assert.deepEqual(site.undelivered.map(({ death }) => death?.cause), ["attempts"]);
  assert.deepEqual(site.status("q"), EMPTY);
});

Deno.test("a queue that hands over what is dead keeps a message with nothing for that, until it is purged (Q4)", async () => {
  const site = await started({ q: { maxAttempts: 1, whenDead: "hand over" } });
  site.queues.outlet.serve("q", () => Promise.reject(new Error("no")));
  await site.send("q", "x");
  await site.pass(500);
  assert.deepEqual(site.undelivered, []);
  assert.deepEqual(site.status("q"), { ...EMPTY, dead: 1 });
  await site.stop();
  await site.start(2);
  await site.pass(500);
  assert.deepEqual(site.status("q"), { ...EMPTY, dead: 1 });
  const listed = site.queues.broker.list("q", "dead", { limit: 10 });
  await site.pass(50);
  assert.deepEqual((await listed).map(({ death }) => death?.cause), ["attempts"]);
  const removed = site.queues.broker.remove("q", ["dead"]);
  await site.pass(50);
  assert.equal(await removed, 1);
  assert.deepEqual(site.status("q"), EMPTY);
});
