/** Emulated links: delay, rate, loss, cuts. Bounds are wide where a loaded machine could be late, never early. */
import { strict as assert } from "node:assert";
import { type LinkShape, MemoryTransport, TCP } from "../../../runtime/link/mod.ts";
import { PreciseTimer } from "../../../runtime/link/precise_timer.ts";
import { bytes, type LinkSite, textOf, until, withSites } from "./sites.ts";

const ECHOES_MAX = 1_000;
const PLAIN: LinkShape = { rttMs: 2, mbps: 1000, jitterMs: 0, loss: 0 };

async function echoes(site: LinkSite, to: string, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    await site.hub.request(to, "echo", bytes("x"));
    times.push(performance.now() - startMs);
  }
  return times.sort((a, b) => a - b);
}

for (const rttMs of [2, 20]) {
  Deno.test(`emulation: an echo over a link of ${rttMs} ms takes about that`, () =>
    withSites(TCP, async (start) => {
      const emulate = () => ({ ...PLAIN, rttMs });
      const parent = start({ site: "core", emulate });
      const child = start({ site: "edge", parent, emulate });
      await child.connected("core");
      // A machine that does other things is late for most echoes, not for all of them.
      let lateMs = Infinity;
      for (let echo = 0; echo < ECHOES_MAX && (echo < 50 || lateMs > 2); echo++) {
        const [ms = 0] = await echoes(child, "core", 1);
        // Each direction may be early by the timer's tolerance of 0.1 ms.
        assert.ok(ms >= rttMs - 0.25, `an echo took ${ms} ms`);
        lateMs = Math.min(lateMs, ms - rttMs);
      }
      assert.ok(lateMs <= 2, `the least late of ${ECHOES_MAX} is late by ${lateMs} ms`);
    }));
}

Deno.test("emulation: the rate bounds throughput, and a slow link still interleaves", () =>
  withSites(TCP, async (start) => {
    const emulate = () => ({ ...PLAIN, mbps: 40 });
    const order: string[] = [];
    const parent = start({
      site: "core",
      emulate,
      message: () => void order.push("message"),
      request: (_, { head }) => {
        order.push("request");
        return Promise.resolve({ head });
      },
    });
    const child = start({ site: "edge", parent, emulate });
    await child.connected("core");
    const startMs = performance.now();
    const sent = child.hub.send("core", new Uint8Array(1_000_000));
    await echoes(child, "core", 1);
    await sent;
    await until("it has arrived", () => order.length === 2);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs >= 195, `1 MB at 40 Mbit/s took ${tookMs} ms`);
    assert.deepEqual(order, ["request", "message"], "what was asked behind it came before its end");
  }));

// EM1
Deno.test("emulation: a lost frame arrives a round trip and 200 ms later, and order is kept", () =>
  withSites(new MemoryTransport(), async (start) => {
    let lossy = false;
    let draws = 0;
    // Every third record that the child sends is lost.
    const random = () => (lossy && ++draws % 3 === 0 ? 0 : 0.999);
    const parent = start({ site: "core" });
    const emulate = () => ({ rttMs: 20, mbps: 1000, jitterMs: 5, loss: 0.01 });
    const child = start({ site: "edge", parent, emulate, random });
    await child.connected("core");
    lossy = true;
    const startMs = performance.now();
    for (let i = 0; i < 12; i++) {
      await child.hub.send("core", bytes(`${i}`));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await until("all arrived", () => parent.messages.length === 12);
    assert.ok(performance.now() - startMs >= 10 + 20 + 200 - 1);
    assert.deepEqual(parent.messages.map(({ bytes }) => textOf(bytes)), [...Array(12).keys()].map(String));
  }));

Deno.test("emulation: conditions can change while the link is up", () =>
  withSites(TCP, async (start) => {
    const parent = start({ site: "core" });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    child.hub.control.shape("core", { ...PLAIN, rttMs: 60 });
    assert.equal(child.hub.control.shapeOf("core")?.rttMs, 60);
    const [delayed = 0] = await echoes(child, "core", 1);
    assert.ok(delayed >= 29.5, `half a round trip, took ${delayed} ms`);
    child.hub.control.shape("core", null);
    await until("fast again", () => child.hub.control.shapeOf("core") === null);
    const [fast = Infinity] = await echoes(child, "core", 10);
    assert.ok(fast < 29, `took ${fast} ms`);
    assert.equal(child.events.length, 1);
  }));

// EM2
Deno.test("emulation: a short cut holds bytes back and loses nothing", () =>
  withSites(TCP, async (start) => {
    const parent = start({ site: "core" });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    child.hub.control.cut("core");
    assert.deepEqual(child.hub.control.cuts(), ["core"]);
    const answer = child.hub.request("core", "echo", bytes("held"));
    void parent.hub.send("edge", bytes("down"));
    const winner = await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 100, "cut"))]);
    assert.equal(winner, "cut");
    assert.equal(child.messages.length, 0);
    child.hub.control.heal("core");
    assert.equal(textOf((await answer).head), "held");
    await until("the other direction too", () => child.messages.length === 1);
    assert.deepEqual([parent.events.length, child.events.length], [1, 2]);
  }));

Deno.test("emulation: a long cut ends the connection at both sides, and a heal brings it back", () =>
  withSites(TCP, async (start) => {
    // A process whose ticks are late by a ping takes no silence for a death: so pings are far apart.
    const limits = { pingMs: 200, deadMs: 500, handshakeMs: 500, retryMsMax: 50 };
    const parent = start({ site: "core", limits });
    const child = start({ site: "edge", parent, limits });
    await Promise.all([child.connected("core"), parent.connected("edge")]);
    parent.hub.control.cut("edge");
    const lost = assert.rejects(child.hub.request("core", "echo", bytes("x")), { code: "closed" });
    await until("both have noticed", () => child.events.length === 2 && parent.events.length === 2);
    await lost;
    assert.deepEqual([child.events[1], parent.events[1]], ["-core lost", "-edge lost"]);
    await until("attempts fail", () => child.log.some(({ reason }) => String(reason).includes("in time")));
    assert.equal(child.events.length, 2);
    parent.hub.control.heal("edge");
    await child.connected("core");
    await parent.connected("edge");
    assert.equal(textOf((await child.hub.request("core", "echo", bytes("back"))).head), "back");
  }));

Deno.test("emulation: a cut of everything also stops peers that are dialled later", () =>
  withSites(new MemoryTransport(), async (start) => {
    const limits = { handshakeMs: 1_000, pingMs: 20, deadMs: 10_000 };
    const a = start({ site: "a", limits });
    const b = start({ site: "b", limits });
    const c = start({ site: "c", limits });
    a.hub.control.cutAll(["c"]);
    await Promise.all([
      assert.rejects(a.hub.request("b", "echo", bytes("x")), { code: "unreachable" }),
      assert.rejects(b.hub.request("a", "echo", bytes("x")), { code: "unreachable" }),
    ]);
    await a.hub.request("c", "echo", bytes("x"));
    await c.hub.request("b", "echo", bytes("x"));
    a.hub.control.healAll();
    await b.hub.request("a", "echo", bytes("x"));
  }));

Deno.test("timer: callbacks come in the order of their times, none too early, none after close (TM1, TM2)", async () => {
  const timer = new PreciseTimer();
  const fired: number[] = [];
  const startMs = performance.now();
  for (const ms of [9, 1, 30, 3, 3.05, 0.2, 25]) {
    timer.at(startMs + ms, () => {
      assert.ok(performance.now() - startMs >= ms - 0.11);
      fired.push(ms);
    });
  }
  await until("the first six", () => fired.length >= 6);
  timer.at(performance.now() + 1_000, () => fired.push(-1));
  await until("the rest", () => fired.length === 7);
  await timer.close();
  timer.at(performance.now(), () => fired.push(-2));
  assert.deepEqual(fired, [0.2, 1, 3, 3.05, 9, 25, 30]);
});
