/** The host side of a plain WebSocket, over a home side by hand: what its client and its session see of each other. */
import assert from "node:assert/strict";
import type { Problem } from "../../../functions/vocabulary/problem.ts";
import { channelOf, feed, type FrameWay, localWay } from "../../../functions/sessions/attach/frame_way.ts";
import { WayRefused } from "../../../functions/sessions/serve/peer_ways.ts";
import { encodeSummary } from "../../../functions/sessions/sealed/mod.ts";
import { PlainPeer, type PlainPeerPorts } from "../../../runtime/stateful/plain_peer.ts";
import { HandClock, HandHome } from "../../functions/sessions/attach/peer_pair.ts";

/** A home that is found, as often as it is asked for. */
class Place {
  readonly home = new HandHome(new HandClock(), { outboxBytesMax: 64 << 20 });
  readonly counted: string[] = [];
  readonly faults: unknown[] = [];
  ways: FrameWay[] = [];
  asked = 0;
  /** Why there is no way. */
  refusal: WayRefused | null = null;

  constructor() {
    this.home.side.opened({ epoch: 1, peers: [], outputs: [] });
  }

  readonly open = (): Promise<FrameWay> => {
    this.asked++;
    if (this.refusal !== null) return Promise.reject(this.refusal);
    const [mine, its] = localWay();
    this.ways.push(its);
    void feed(its, this.home.side.accept(channelOf(its), "client"), (error) => {
      throw error;
    });
    return Promise.resolve(mine);
  };

  attach(more: Partial<PlainPeerPorts> = {}): Promise<PlainPeer> {
    return PlainPeer.attach({
      ...more,
      ...{ open: this.open, instance: 7, count: (what) => void this.counted.push(what) },
      failed: (error) => void this.faults.push(error),
    });
  }

  /** A client that is attached. */
  async attached(more: Partial<PlainPeerPorts> = {}): Promise<PlainPeer> {
    const peer = this.attach(more);
    await until(() => this.home.events.length === 1);
    this.home.done();
    return await peer;
  }

  /** Its way breaks. */
  break(): void {
    for (const way of this.ways.splice(0)) way.close();
  }

  get messages(): string[] {
    return this.home.events.flatMap((event) => event.kind === "message" ? [String(event.message)] : []);
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 60_000; !holds();) {
    assert.ok(Date.now() < endMs, "waited for too long");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** The client goes, and its session lets it. */
async function leave(place: Place, peer: PlainPeer): Promise<void> {
  peer.close(1000, "");
  await until(() => place.home.events.at(-1)?.kind === "detach");
  place.home.doneAll();
  await until(() => place.home.side.status.attached === 0);
}

Deno.test("a plain client is attached when that is in the log, and refused with what onOpen threw", async () => {
  const place = new Place();
  let isAttached = false;
  const attaching = place.attach().then((peer) => {
    isAttached = true;
    return peer;
  });
  await until(() => place.home.events.length === 1);
  assert.equal(isAttached, false);
  place.home.done();
  await leave(place, await attaching);
  const other = new Place();
  const refused = assert.rejects(other.attach(), (error: Problem) => /it threw/.test(error.message));
  await until(() => other.home.events.length === 1);
  other.home.done({}, "app_error");
  await refused;
});

Deno.test("a plain client is told why there is no session for it, and waits where that passes", async () => {
  const place = new Place();
  place.refusal = new WayRefused("stateful_parked", "it stands still");
  await assert.rejects(place.attach(), { code: "stateful_parked" });
  place.refusal = new WayRefused("superseded_home", "nobody is home");
  const attaching = place.attach();
  await until(() => place.asked > 2);
  place.refusal = null;
  await until(() => place.home.events.length === 1);
  place.home.done();
  await leave(place, await attaching);
});

Deno.test("a plain client's messages and outputs outlive the ways, each once and in order", async () => {
  const place = new Place();
  const peer = await place.attached();
  const sent: string[] = [], got: string[] = [];
  for (let i = 0; i < 20; i++) {
    await peer.send(`m${i}`);
    sent.push(`m${i}`);
    if (i % 3 === 0) place.break();
    if (i % 4 === 1) {
      await until(() => place.messages.length > 0);
      place.home.done({ p1: [`o${got.length}`] });
      const event = await peer.next();
      got.push(event.kind === "message" ? String(event.data) : event.kind);
    }
  }
  await until(() => place.messages.at(-1) === "m19");
  assert.deepEqual(place.messages, sent.slice(-place.messages.length));
  assert.equal(place.messages.length + got.length, 20);
  assert.deepEqual(got, got.map((_, i) => `o${i}`));
  assert.ok(place.counted.includes("resumed"));
  place.home.doneAll();
  await leave(place, peer);
});

Deno.test("a plain client that sends faster than its log takes is not read meanwhile", async () => {
  const place = new Place();
  const peer = await place.attached();
  const large = "x".repeat(600 << 10);
  let taken = 0;
  const sending = (async () => {
    for (; taken < 6; taken++) await peer.send(large);
  })();
  await until(() => place.messages.length === 2);
  assert.ok(taken < 3, `${taken} were taken`);
  while (taken < 6) {
    place.home.doneAll();
    place.home.clock.turn(50);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await sending;
  place.home.doneAll();
  await leave(place, peer);
});

Deno.test("a plain client that does not take what it is sent, or sends too much at once, is closed, and its session knows", async () => {
  for (const [act, code] of [["slow", 1008], ["large", 1009]] as const) {
    const place = new Place();
    const peer = await place.attached();
    if (act === "large") await peer.send("x".repeat((4 << 20) + 1));
    else {
      const megabyte = "y".repeat(1 << 20);
      await peer.send("go");
      await until(() => place.messages.length === 1);
      place.home.done({ p1: Array.from({ length: 5 }, () => megabyte) });
      await until(() => place.counted.includes("slow"));
    }
    let event = await peer.next();
    while (event.kind === "message") event = await peer.next();
    assert.equal(event.code, code, act);
    await until(() => place.home.events.at(-1)?.kind === "detach");
    place.home.doneAll();
    await until(() => place.home.side.status.attached === 0);
  }
});

Deno.test("a plain client hears how its session sends it away, ends, or forgets it", async () => {
  const away = new Place();
  const first = await away.attached();
  await first.send("go");
  await until(() => away.messages.length === 1);
  away.home.done({ p1: ["last", "!out"] });
  assert.deepEqual(await first.next(), { kind: "message", data: "last" });
  assert.deepEqual(await first.next(), { kind: "close", code: 4001, reason: "out" });
  await until(() => away.home.events.at(-1)?.kind === "detach");
  const over = new Place();
  const second = await over.attached();
  over.home.side.ended(1000, "over");
  assert.deepEqual(await second.next(), { kind: "close", code: 1000, reason: "over" });
  const forgets = new Place();
  const third = await forgets.attached();
  forgets.home.side.opened({ epoch: 2, peers: [], outputs: [] });
  const event = await third.next();
  assert.deepEqual([event.kind, event.kind === "close" && event.code], ["close", 1012]);
});

/** Time that goes so many times as fast. */
const clockAt = (pace: number) => ({
  nowMs: () => performance.now() * pace,
  after: (ms: number, run: () => void) => {
    const timer = setTimeout(run, ms / pace);
    return () => clearTimeout(timer);
  },
});

Deno.test("a client whose agent holds its session's log keeps on looking for a home, one without does not", async () => {
  for (const promised of [1, 0]) {
    const place = new Place();
    const summary = encodeSummary({ promised, tag: null });
    const log = {
      promised,
      summary: () => summary,
      promise: () => [],
      take: () => "held" as const,
      drop: () => {},
    };
    const peer = await place.attached({ clock: clockAt(1_000), log });
    place.refusal = new WayRefused("stateful_unreachable", "no site answers");
    const asked = place.asked;
    place.break();
    if (promised === 0) {
      const event = await peer.next();
      assert.deepEqual([event.kind === "close" && event.code, place.counted.includes("lost")], [1013, true]);
      continue;
    }
    await until(() => place.asked > asked + 150); // two and a half minutes at least
    place.refusal = new WayRefused("app_unknown", "that site knows nothing yet");
    const knows = place.asked;
    await until(() => place.asked > knows + 10);
    place.refusal = null;
    await until(() => place.counted.includes("resumed"));
    await leave(place, peer);
  }
});

Deno.test("an agent gives up a connection whose session had no home for a day, though it holds the log", async () => {
  const place = new Place(), real = clockAt(1_000);
  const [summary, day] = [encodeSummary({ promised: 1, tag: null }), 24 * 3_600_000];
  let later = 0;
  const log = {
    promised: 1,
    summary: () => summary,
    promise: () => [],
    take: () => "held" as const,
    drop: () => {},
  };
  const peer = await place.attached({ clock: { ...real, nowMs: () => real.nowMs() + later }, log });
  place.refusal = new WayRefused("app_unknown", "the app was deleted");
  place.break();
  const asked = place.asked;
  await until(() => place.asked > asked + 1);
  later = day / 2;
  await until(() => place.asked > asked + 10);
  later = day + 60_000;
  const event = await peer.next();
  assert.deepEqual([event.kind === "close" && event.code, event.kind === "close" && event.reason], [
    1013,
    "app_unknown",
  ]);
});

Deno.test("a plain client does not wait for ever for a session that waits for others who hold its log", async () => {
  const home = new HandHome();
  let asked = 0;
  const open = (): Promise<FrameWay> => {
    asked++;
    const [mine, its] = localWay();
    void feed(its, home.side.accept(channelOf(its), "client"), () => {});
    setTimeout(() => home.side.unavailable("stateful_unreachable", "c1 has not come back", "retry"), 1);
    return Promise.resolve(mine);
  };
  const clock = clockAt(50);
  const attached = PlainPeer.attach({ open, instance: 7, count: () => {}, failed: () => {}, clock });
  await assert.rejects(attached, { code: "stateful_unreachable", message: /c1 has not come back/ });
  assert.ok(asked > 1, "it was tried again");
});
