/**
 * Three sites whose links are cut, reset and restarted at random while messages and requests flow. `LINK_SOAK` sets
 * the number of seeds (8 in the gate), `LINK_SOAK_SEED` the first one.
 *
 * What must hold, from what the owners were told alone:
 * 1. connected and disconnected alternate per site; messages come only between them;
 * 2. per pair and direction, messages arrive in the order sent and none twice; within one connection, without a gap;
 * 3. every request ends; what its body echoes is what was sent, or it fails;
 * 4. when the faults are over, everything passes again.
 */
import { strict as assert } from "node:assert";
import { LinkError, type LinkLimits, MemoryTransport } from "../../../runtime/link/mod.ts";
import { bytes, LinkSite, until } from "./sites.ts";

const SEEDS = Number(Deno.env.get("LINK_SOAK") ?? 8);
const FIRST = Number(Deno.env.get("LINK_SOAK_SEED") ?? 1);
const STEPS = 150;
/** Connections die soon, so that many do within a seed. */
const HASTY = { pingMs: 20, deadMs: 100, handshakeMs: 100, retryMsMin: 1, retryMsMax: 10 };
const SITES = ["core", "edge", "fog"];

function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) % below;
  };
}

class Soak {
  readonly transport = new MemoryTransport();
  readonly book = new Map<string, string>();
  readonly sites = new Map<string, LinkSite>();
  readonly history = new Map<string, string[][]>();
  readonly requests: Promise<void>[] = [];
  readonly ends = { answered: 0, failed: 0 };
  #number = 0;
  #ports = new Map(SITES.map((site, i) => [site, 100 + i]));

  constructor(readonly below: (limit: number) => number, readonly limits: Partial<LinkLimits>) {}

  start(site: string): void {
    const started = new LinkSite(this.transport, this.book, {
      site,
      port: this.#ports.get(site) ?? 0,
      parent: site === "core" ? null : { site: "core", address: "memory:100" },
      limits: this.limits,
      emulate: () => this.below(2) === 0 ? null : { rttMs: 1, mbps: 1000, jitterMs: 1, loss: 0 },
    });
    this.sites.set(site, started);
    this.history.set(site, [...this.history.get(site) ?? [], started.events]);
  }

  site(name: string): LinkSite {
    return this.sites.get(name) ?? assert.fail(name);
  }

  /** Numbers go up per sender over all its lives. Every tenth message is long enough to travel in parts. */
  send(from: string, to: string): void {
    const text = `${this.#number++}`;
    void this.site(from).hub.send(to, bytes(text));
    if (this.below(10) === 0) void this.site(from).hub.send(to, new Uint8Array(50_000 + this.below(300_000)));
  }

  request(from: string, to: string): void {
    const size = this.below(3) === 0 ? this.below(1_000_000) : this.below(100);
    const giveUp = new AbortController();
    const sent = new Uint8Array(size).fill(size);
    const exchange = async () => {
      const body = ReadableStream.from([sent.subarray(0, size >> 1), sent.subarray(size >> 1)]);
      const answer = await this.site(from).hub.request(to, "echo", bytes("h"), {
        body,
        signal: giveUp.signal,
      });
      const echoed = new Uint8Array(await new Response(answer.body).arrayBuffer());
      assert.deepEqual([echoed.length, echoed[0]], [size, sent[0]]);
      this.ends.answered++;
    };
    this.requests.push(
      exchange().catch((error) => {
        assert.ok(error instanceof LinkError, `a request ended with ${error}`);
        this.ends.failed++;
      }),
    );
    if (this.below(5) === 0) setImmediate(() => giveUp.abort());
  }

  async fault(): Promise<void> {
    const site = SITES[this.below(3)] ?? "core";
    const { control } = this.site(site).hub;
    const other = SITES[this.below(3)] ?? "core";
    switch (this.below(6)) {
      case 0:
        return control.cut(other);
      case 1:
        return control.cutAll();
      case 2:
        return control.shape(other, {
          rttMs: this.below(6),
          mbps: 1 + this.below(1000),
          jitterMs: 2,
          loss: 0,
        });
      case 3: {
        const stopped = this.site(site);
        await stopped.hub.close();
        return this.start(site);
      }
      default:
        return control.healAll();
    }
  }

  /** Checks 1 and 2 over one life of a site. */
  check(site: string, events: readonly string[]): void {
    const up = new Set<string>();
    const last = new Map<string, number>();
    for (const event of events) {
      const [, sign = "", name = ""] = /^([+-]?)([a-z]+)/.exec(event) ?? [];
      if (sign === "+") {
        assert.ok(!up.has(name), `${site}: ${event} twice`);
        up.add(name);
      } else if (sign === "-") {
        assert.ok(up.delete(name), `${site}: ${event} without a connection`);
      } else {
        assert.ok(up.has(name), `${site}: ${event} without a connection`);
        const number = Number(event.split(":")[1]);
        assert.ok(number > (last.get(name) ?? -1), `${site}: ${event} after ${last.get(name)}`);
        last.set(name, number);
      }
    }
  }
}

async function soak(seed: number): Promise<void> {
  const soak = new Soak(random(seed), HASTY);
  for (const site of SITES) soak.start(site);
  for (let step = 0; step < STEPS; step++) {
    for (let i = soak.below(4); i > 0; i--) {
      const from = SITES[soak.below(3)] ?? "";
      const to = SITES[soak.below(3)] ?? "";
      if (from === to) continue;
      if (soak.below(3) === 0) soak.request(from, to);
      else soak.send(from, to);
    }
    if (soak.below(12) === 0) await soak.fault();
    await new Promise((resolve) => setTimeout(resolve, soak.below(4)));
  }
  for (const site of soak.sites.values()) {
    site.hub.control.healAll();
    for (const other of SITES) site.hub.control.shape(other, null);
  }
  // 4: all three reach each other; the peers' first attempts may meet what is left of an old connection.
  for (const from of SITES) {
    for (const to of SITES.filter((to) => to !== from)) {
      let reached = false;
      const reach = async () => {
        while (!reached) {
          reached = await soak.site(from).hub.request(to, "echo", bytes("x")).then(() => true, () => false);
          if (!reached) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      };
      const giveUp = setTimeout(() => reached = true, 60_000);
      await reach();
      clearTimeout(giveUp);
      assert.ok(soak.site(from).isConnected(to), `${from} reaches ${to}`);
    }
  }
  await Promise.all(soak.requests);
  const open = [...soak.sites.values()].flatMap(({ hub }) =>
    hub.status().links.map(({ requests }) => requests)
  );
  assert.ok(open.every((requests) => requests === 0), `open requests are left: ${open}`);
  await Promise.all([...soak.sites.values()].map(({ hub }) => hub.close()));
  for (const [site, lives] of soak.history) lives.forEach((events) => soak.check(site, events));
  assert.ok(soak.ends.answered > 0);
}

for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
  Deno.test(`link soak: seed ${seed} (site_link.ts LL1)`, () => soak(seed));
}

// Without a gap within one connection: what a FIFO promises, apart from the faults between connections.
Deno.test("link soak: a connection that is not disturbed loses nothing", async () => {
  const soak = new Soak(random(99), {});
  for (const site of SITES) soak.start(site);
  await until("the children are connected", () => soak.site("core").events.length === 2);
  await soak.site("edge").connected("core");
  for (let i = 0; i < 2_000; i++) soak.send("edge", "core");
  await until("all arrived", () => soak.site("core").events.length === 2 + 2_000);
  const numbers = soak.site("core").events.slice(2).map((event) => Number(event.split(":")[1]));
  assert.deepEqual(numbers, [...Array(2_000).keys()]);
  await Promise.all([...soak.sites.values()].map(({ hub }) => hub.close()));
});
