/** What every implementation of links keeps, whatever carries the bytes. */
import { strict as assert } from "node:assert";
import { LinkError, type LinkErrorCode, type Transport } from "../../runtime/link/mod.ts";
import { bytes, type LinkSite, type SiteOptions, textOf, until, withSites } from "../runtime/link/sites.ts";

type Start = (options: SiteOptions) => LinkSite;

async function family(start: Start, more: Partial<SiteOptions> = {}): Promise<[LinkSite, LinkSite]> {
  const parent = start({ site: "core", ...more });
  const child = start({ site: "edge", parent, ...more });
  await Promise.all([child.connected("core"), parent.connected("edge")]);
  return [parent, child];
}

async function rejectsWith(code: LinkErrorCode, promise: Promise<unknown>): Promise<LinkError> {
  const error = await promise.then(() => null, (error) => error);
  assert.ok(error instanceof LinkError, `expected a LinkError ${code}, got ${error}`);
  assert.equal(error.code, code, error.message);
  return error;
}

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return ReadableStream.from(chunks);
}

async function read(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  return new Uint8Array(await new Response(body as BodyInit | null).arrayBuffer());
}

type Case = (start: Start, book: Map<string, string>) => Promise<void>;

const relations: Record<string, Case> = {
  async "a child and its parent know each other's role"(start) {
    const [parent, child] = await family(start);
    assert.deepEqual(parent.events, ["+edge child"]);
    assert.deepEqual(child.events, ["+core parent"]);
    await until(
      "rtt measured",
      () => child.link("core").rttMs !== null && parent.link("edge").rttMs !== null,
    );
  },

  async "a peer is dialled on demand and messages wait for it (site_link.ts LL1)"(start) {
    const a = start({ site: "a" });
    const b = start({ site: "b" });
    await Promise.all([a.hub.send("b", bytes("one")), a.hub.send("b", bytes("two"))]);
    await until("both arrived", () => b.messages.length === 2);
    assert.deepEqual(b.events, ["+a peer", "a:one", "a:two"]);
    assert.equal(a.link("b").role, "peer");
  },

  async "peers that dial each other at once keep one connection"(start) {
    for (let round = 0; round < 5; round++) {
      const [x, y] = [`x${round}`, `y${round}`];
      const a = start({ site: x });
      const b = start({ site: y });
      await Promise.all([
        a.hub.request(y, "echo", bytes("from a")),
        b.hub.request(x, "echo", bytes("from b")),
      ]);
      assert.deepEqual(a.events, [`+${y} peer`]);
      assert.deepEqual(b.events, [`+${x} peer`]);
      assert.equal(a.hub.status().refused + b.hub.status().refused, 0);
    }
  },

  async "a message to a site that can't be reached is dropped, a request to it fails"(start, book) {
    const a = start({ site: "a" });
    book.set("gone", "127.0.0.1:1");
    await a.hub.send("nobody", bytes("x"));
    await a.hub.send("gone", bytes("x"));
    await until("its owner is told", () => a.unreachable.includes("gone"));
    await rejectsWith("unreachable", a.hub.request("nobody", "echo", bytes("x")));
    await rejectsWith("unreachable", a.hub.request("gone", "echo", bytes("x")));
    await rejectsWith("unreachable", a.hub.request("a", "echo", bytes("x")));
    assert.deepEqual(a.events, []);
  },

  async "a child that is sent away as soon as it has come dials more and more rarely"(start) {
    const [parent, child] = await family(start, { limits: { retryMsMin: 5, retryMsMax: 2_000 } });
    const beganMs = performance.now();
    await until("a second has passed", () => {
      if (parent.isConnected("edge")) parent.hub.dismiss("edge", "it is not wanted");
      return performance.now() - beganMs > 1_000;
    });
    const came = child.events.filter((event) => event === "+core parent").length;
    assert.ok(came >= 2 && came <= 12, `it came ${came} times`);
  },

  async "a cut stops every byte, of links that are there and of those to come, until it heals"(start) {
    const limits = { handshakeMs: 200, pingMs: 20, deadMs: 150, retryMsMax: 50 };
    const [parent, child] = await family(start, { limits });
    parent.hub.control.cut("edge"); // at one side only: that is enough
    const heard = () => [parent.link("edge").counters.bytesIn, child.link("core").counters.bytesIn];
    await until("both have noticed", () => !parent.isConnected("edge") && !child.isConnected("core"));
    const before = heard();
    await rejectsWith("unreachable", child.hub.request("core", "echo", bytes("x")));
    const dialled = performance.now();
    await until("it has dialled again", () => performance.now() - dialled > 2 * limits.retryMsMax);
    assert.deepEqual(heard(), before);
    parent.hub.control.heal("edge");
    await child.connected("core");
    assert.equal(textOf((await child.hub.request("core", "echo", bytes("back"))).head), "back");
  },

  async "a link that begins cut carries nothing until it heals"(start) {
    const limits = { handshakeMs: 100, retryMsMax: 50 };
    const parent = start({ site: "core", limits });
    const child = start({ site: "edge", parent, limits, isCut: (site) => site === "core" });
    await until("it has dialled in vain", () => child.log.some(({ event }) => event === "link.dial_failed"));
    assert.deepEqual(parent.events, []);
    child.hub.control.heal("core");
    await child.connected("core");
  },

  async "a site that is not admitted learns why and is not connected (hub.ts LU2)"(start) {
    const parent = start({ site: "core", admit: (site, role) => `no ${role} ${site} here` });
    const child = start({ site: "edge", parent });
    await until(
      "refused",
      () => child.log.some((entry) => String(entry.reason).includes("no child edge here")),
    );
    assert.deepEqual([parent.events, child.events], [[], []]);
  },

  async "neither its parent nor a child that is connected becomes a peer (hub.ts LU2)"(start, book) {
    const [parent, child] = await family(start);
    const addresses = { core: parent.address, edge: child.address }; // the book has those of their twins then
    const other = start({ site: "other" });
    book.set("edge", addresses.edge);
    await other.hub.request("edge", "echo", bytes("as a peer"));
    for (const [site, to] of [["core", "edge"], ["edge", "core"]] as const) {
      const twin = start({ site });
      book.set(to, addresses[to]);
      await rejectsWith("unreachable", twin.hub.request(to, "echo", bytes("x")));
      const [failed] = twin.log;
      assert.match(String(failed?.reason), /is this site's parent|is connected as a child/);
      await twin.hub.close();
    }
    assert.deepEqual([parent.link("edge").role, child.link("core").role], ["child", "parent"]);
  },

  async "the order of start does not matter"(start) {
    const gone = start({ site: "core" });
    const { address } = gone;
    await gone.hub.close();
    const child = start({ site: "edge", parent: { site: "core", address } });
    await until("a dial failed", () => child.log.some((entry) => entry.event === "link.dial_failed"));
    start({ site: "core", port: Number(address.split(":").at(-1)) });
    await child.connected("core");
  },

  async "close says goodbye: the other side knows that it was planned"(start) {
    const [parent, child] = await family(start);
    await child.hub.close();
    await until("disconnected", () => parent.events.length === 2);
    assert.deepEqual(parent.events, ["+edge child", "-edge planned"]);
    assert.deepEqual(child.events, ["+core parent", "-core planned"]);
  },

  async "a second disk under the name of a child that is connected is refused, by name"(start) {
    const [parent, child] = await family(start);
    const twin = start({ site: "edge", incarnation: "edge-2", parent });
    await until(
      "refused",
      () => twin.log.some((entry) => /connected with another disk/.test(entry.reason ?? "")),
    );
    assert.deepEqual(parent.events, ["+edge child"]);
    assert.deepEqual([child.isConnected("core"), twin.isConnected("core")], [true, false]);
  },

  async "a new connection of a site ends the one before it (site_link.ts LL2)"(start) {
    const [parent] = await family(start);
    const twin = start({ site: "edge", incarnation: "edge-1", parent });
    await twin.connected("core");
    await until("replaced", () => parent.events.length >= 3);
    assert.deepEqual(parent.events.slice(0, 3), ["+edge child", "-edge lost", "+edge child"]);
  },

  async "a peer idle for long is left with a goodbye, and found again"(start) {
    const limits = { peerIdleMs: 50, pingMs: 20, deadMs: 2_000 };
    const a = start({ site: "a", limits });
    const b = start({ site: "b", limits });
    await a.hub.request("b", "echo", bytes("x"));
    await until("left", () => a.events.length === 2 && b.events.length === 2);
    assert.deepEqual(b.events, ["+a peer", "-a planned"]);
    await b.hub.request("a", "echo", bytes("x"));
    assert.equal(b.events[2], "+a peer");
  },
};

const messages: Record<string, Case> = {
  async "messages arrive whole, once and in order, of any size, both ways (link/messages.ts LM1, record.ts RR2)"(
    start,
  ) {
    const [parent, child] = await family(start);
    const sizes = [0, 1, 99, 32_767, 32_768, 32_769, 65_536, 1, 5_000_000, 0, 7];
    for (const site of [parent, child]) {
      const to = site === parent ? "edge" : "core";
      for (let round = 0; round < 3; round++) {
        for (const [i, size] of sizes.entries()) {
          await site.hub.send(to, new Uint8Array(size).fill(i + round));
        }
      }
    }
    for (const site of [parent, child]) {
      await until("all arrived", () => site.messages.length === 3 * sizes.length);
      for (const [i, { bytes }] of site.messages.entries()) {
        const fill = i % sizes.length + Math.floor(i / sizes.length);
        assert.equal(bytes.length, sizes[i % sizes.length]);
        assert.ok(bytes.every((byte) => byte === fill), `message ${i} is not what was sent`);
      }
    }
  },

  async "the next message comes when the one before was taken (link/messages.ts LM1)"(start) {
    let taking = 0;
    const order: number[] = [];
    const parent = start({
      site: "core",
      message: async (_site, message) => {
        assert.equal(++taking, 1, "two messages at once");
        await new Promise((resolve) => setTimeout(resolve, message[0] === 0 ? 5 : 0));
        order.push(message[0] ?? -1);
        taking--;
      },
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    for (let i = 0; i < 20; i++) void child.hub.send("core", new Uint8Array([i % 4, i]));
    await until("all taken", () => order.length === 20);
    assert.deepEqual(order.slice(0, 4), [0, 1, 2, 3]);
  },

  async "a message that cannot be taken ends the connection, and the site lives (hub.ts LU3)"(start) {
    let failures = 0;
    const parent = start({
      site: "core",
      message: () => {
        if (failures++ === 0) throw new Error("cannot");
      },
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    void child.hub.send("core", bytes("x"));
    await until("lost and back", () => child.events.length === 3);
    assert.deepEqual(child.events, ["+core parent", "-core lost", "+core parent"]);
    assert.ok(parent.log.some((entry) => String(entry.reason).includes("cannot")));
  },

  async "a message beyond the limit is refused at its sender"(start) {
    const [, child] = await family(start, { limits: { messageBytesMax: 1_000_000 } });
    await rejectsWith("limit", child.hub.send("core", new Uint8Array(1_000_001)));
    assert.ok(child.isConnected("core"));
  },

  async "a link without traffic costs its counters of store and requests nothing"(start) {
    const [parent, child] = await family(start, { limits: { pingMs: 10, deadMs: 5_000 } });
    await until("some pings", () => child.link("core").counters.bytesOut > 400);
    for (const { counters } of [parent.link("edge"), child.link("core")]) {
      const { storeBytesIn, storeBytesOut, requestBytesIn, requestBytesOut } = counters;
      assert.deepEqual([storeBytesIn, storeBytesOut, requestBytesIn, requestBytesOut], [0, 0, 0, 0]);
    }
    await child.hub.send("core", new Uint8Array(1000));
    await until("arrived", () => parent.messages.length === 1);
    assert.equal(parent.link("edge").counters.storeBytesIn, 1004);
    assert.equal(child.link("core").counters.storeBytesOut, 1004);
    assert.equal(child.link("core").counters.storeMessagesOut, 1);
  },
};

const requests: Record<string, Case> = {
  async "a request is answered with head and body, streaming both ways"(start) {
    const [, child] = await family(start);
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const answer = await child.hub.request("core", "echo", bytes("head"), { body: body.readable });
    assert.equal(textOf(answer.head), "head");
    const reader = (answer.body ?? assert.fail("no body")).getReader();
    for (const text of ["one", "two", "three"]) {
      await writer.write(bytes(text));
      assert.equal(textOf((await reader.read()).value ?? bytes("")), text);
    }
    await writer.close();
    assert.equal((await reader.read()).done, true);
    await until("nothing is left open", () => child.link("core").requests === 0);
  },

  async "requests without bodies, empty bodies and large ones, many at once, both ways (body.ts BD1)"(start) {
    const [parent, child] = await family(start);
    const sizes = [null, 0, 1, 1000, 100_000, 3_000_000];
    const all = [...Array(60).keys()].map(async (i) => {
      const size = sizes[i % sizes.length] ?? null;
      const [from, to] = i % 2 ? [parent, "edge"] as const : [child, "core"] as const;
      const body = size === null ? null : streamOf(new Uint8Array(size).fill(i));
      const answer = await from.hub.request(to, "echo", bytes(`head ${i}`), { body });
      assert.equal(textOf(answer.head), `head ${i}`);
      assert.equal(answer.body === null, size === null);
      const echoed = await read(answer.body);
      assert.equal(echoed.length, size ?? 0);
      assert.ok(echoed.every((byte) => byte === i));
    });
    await Promise.all(all);
    await until(
      "nothing is left open",
      () => child.link("core").requests + parent.link("edge").requests === 0,
    );
  },

  async "kind and caller reach the handler; its failure reaches the caller"(start) {
    const parent = start({
      site: "core",
      request: (site, { kind }) =>
        kind === "busy" ? Promise.reject(new LinkError("overloaded", "later")) : Promise.reject(
          new Error(`${site} asked for ${kind}`),
        ),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const error = await rejectsWith("failed", child.hub.request("core", "thing", bytes("")));
    assert.equal(error.message, "edge asked for thing");
    await rejectsWith("overloaded", child.hub.request("core", "busy", bytes("")));
  },

  async "a request given up reaches its handler, and its body's source is cancelled (exchanges.ts EX2)"(
    start,
  ) {
    let aborted: unknown = null;
    const parent = start({
      site: "core",
      request: (_site, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(aborted = signal.reason), { once: true })
        ),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({ cancel: () => void (cancelled = true) });
    const giveUp = new AbortController();
    const answer = child.hub.request("core", "wait", bytes(""), { body, signal: giveUp.signal });
    await until("it is open there", () => parent.link("edge").requests === 1);
    giveUp.abort();
    await rejectsWith("cancelled", answer);
    await until("both sides let go", () => aborted !== null && cancelled);
    assert.equal(parent.link("edge").requests, 0);
  },

  async "an answer given up cancels what produces it (exchanges.ts EX2)"(start) {
    let cancelled = false;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(10_000)),
        cancel: () => void (cancelled = true),
      });
    const parent = start({
      site: "core",
      request: () => Promise.resolve({ head: bytes(""), body: endless() }),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const answer = await child.hub.request("core", "endless", bytes(""));
    const reader = (answer.body ?? assert.fail("no body")).getReader();
    for (let i = 0; i < 200; i++) await reader.read();
    await reader.cancel();
    await until("cancelled there", () => cancelled);
  },

  async "a body that fails at its source fails at its reader (body.ts BD1)"(start) {
    const broken = () =>
      ReadableStream.from((async function* () {
        yield new Uint8Array(10);
        await Promise.resolve();
        throw new Error("the source broke");
      })());
    const parent = start({
      site: "core",
      request: () => Promise.resolve({ head: bytes(""), body: broken() }),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const answer = await child.hub.request("core", "broken", bytes(""));
    const error = await rejectsWith(
      "failed",
      (async () => {
        for await (const _ of answer.body ?? assert.fail("no body")) { /* reads on */ }
      })(),
    );
    assert.equal(error.message, "the source broke");
  },

  async "a request whose body nobody reads is still answered, and its source is cancelled"(start) {
    const parent = start({ site: "core", request: () => Promise.resolve({ head: bytes("no") }) });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(50_000)),
      cancel: () => void (cancelled = true),
    });
    const answer = await child.hub.request("core", "post", bytes(""), { body: endless });
    assert.equal(textOf(answer.head), "no");
    await until("the upload ends", () => cancelled && child.link("core").requests === 0);
  },

  async "requests and bodies under way fail when the link is lost (body.ts BD1, exchanges.ts EX1)"(start) {
    const never = () => new ReadableStream<Uint8Array>({ start: (c) => c.enqueue(new Uint8Array(10)) });
    const parent = start({
      site: "core",
      request: (_site, { kind }) =>
        kind === "head" ? new Promise(() => {}) : Promise.resolve({ head: bytes(""), body: never() }),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const pending = rejectsWith("closed", child.hub.request("core", "head", bytes("")));
    const answer = await child.hub.request("core", "body", bytes(""));
    const reader = (answer.body ?? assert.fail("no body")).getReader();
    await reader.read();
    const rest = rejectsWith("closed", reader.read());
    await parent.hub.close();
    await Promise.all([pending, rest]);
  },

  async "more requests than the limit are refused, at both ends"(start) {
    const parent = start({ site: "core", limits: { requestsMax: 5 }, request: () => new Promise(() => {}) });
    const child = start({ site: "edge", parent, limits: { requestsMax: 8 } });
    await child.connected("core");
    const codes: string[] = [];
    const all = [...Array(10)].map(() =>
      child.hub.request("core", "wait", bytes("")).catch((error: LinkError) => codes.push(error.code))
    );
    await until("five of them were refused", () => codes.length === 5);
    assert.deepEqual(codes, Array(5).fill("overloaded"));
    await child.hub.close();
    await Promise.all(all);
    assert.deepEqual(codes.slice(5), Array(5).fill("closed"));
  },

  async "heads beyond the limit are refused at their sender"(start) {
    const parent = start({
      site: "core",
      request: () => Promise.resolve({ head: new Uint8Array(128 * 1024 + 1) }),
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    await rejectsWith("limit", child.hub.request("core", "x", new Uint8Array(128 * 1024 + 1)));
    await rejectsWith("limit", child.hub.request("core", "x", new Uint8Array(128 * 1024)));
    assert.ok(child.isConnected("core"));
  },
};

/** Registers the suite for one transport. */
export function linkContract(name: string, transport: () => Transport): void {
  for (const cases of [relations, messages, requests]) {
    for (const [title, run] of Object.entries(cases)) {
      Deno.test(`link over ${name}: ${title}`, () => withSites(transport(), run));
    }
  }
}
