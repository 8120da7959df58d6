/** What strangers, other clusters and members gone wrong can do to a link: close their own connection. */
import { strict as assert } from "node:assert";
import { randomBytes } from "node:crypto";
import {
  decodeAcceptorHello,
  decodeDialerHello,
  encodeDialerHello,
  encodeDialerProof,
  VERSION_HIGHEST,
} from "../../../runtime/link/hello.ts";
import { TCP } from "../../../runtime/link/mod.ts";
import { deriveKeys, transcript } from "../../../runtime/link/proof.ts";
import { type ByteConnection, closeQuietly, writeAll } from "../../../runtime/link/byte_connection.ts";
import { bytes, type LinkSite, SECRET, type SiteOptions, textOf, until, withSites } from "./sites.ts";

/** A raw connection to a site's link port. */
class Stranger {
  readonly #connection: ByteConnection;
  private constructor(connection: ByteConnection) {
    this.#connection = connection;
  }
  static async knock(site: LinkSite): Promise<Stranger> {
    return new Stranger(await TCP.dial(site.address));
  }
  send(data: Uint8Array): Promise<void> {
    return writeAll(this.#connection, data).catch(() => {});
  }
  message(body: Uint8Array): Promise<void> {
    return this.send(new Uint8Array([body.length >> 8, body.length & 255, ...body]));
  }
  /** Whatever comes until the site has sent `count` bytes or closed. */
  async read(count: number): Promise<Uint8Array> {
    const into = new Uint8Array(count);
    let at = 0;
    while (at < count) {
      const got = await this.#connection.read(into.subarray(at)).catch(() => null);
      if (got === null) break;
      at += got;
    }
    return into.slice(0, at);
  }
  async readMessage(): Promise<Uint8Array> {
    const [high = 0, low = 0] = await this.read(2);
    return await this.read(256 * high + low);
  }
  /** Resolves when the site has closed; what it sent until then. */
  async closed(): Promise<number> {
    return (await this.read(100_000)).length;
  }
  close(): void {
    closeQuietly(this.#connection);
  }
}

function helloOf(site: string, more: Partial<Parameters<typeof encodeDialerHello>[0]> = {}): Uint8Array {
  return encodeDialerHello({
    versionLowest: 1,
    versionHighest: VERSION_HIGHEST,
    nonce: randomBytes(32),
    role: "child",
    site,
    incarnation: "i",
    boot: randomBytes(8),
    target: "core",
    ...more,
  });
}

/** Runs `attack` against a site with a child that is connected, and checks that neither noticed. */
function attackTest(
  name: string,
  attack: (core: LinkSite, start: (options: SiteOptions) => LinkSite) => Promise<string | RegExp>,
  limits: SiteOptions["limits"] = {},
): void {
  Deno.test(`link attack: ${name}`, () =>
    withSites(TCP, async (start) => {
      const core = start({ site: "core", limits });
      const child = start({ site: "edge", parent: core });
      await Promise.all([child.connected("core"), core.connected("edge")]);
      const reason = await attack(core, start);
      await until("it is logged", () => core.log.some(({ event }) => event === "link.refused"));
      const lines = core.log.filter(({ event }) => event === "link.refused");
      assert.equal(lines.length, 1, "once per source and minute");
      assert.match(String(lines[0]?.reason), new RegExp(reason));
      assert.ok(core.hub.status().refused >= 1);
      assert.deepEqual([core.events, child.events], [["+edge child"], ["+core parent"]]);
      assert.equal(textOf((await child.hub.request("core", "echo", bytes("alive"))).head), "alive");
    }));
}

attackTest("garbage closes the connection, however it begins (hub.ts LU3)", async (core) => {
  for (
    const garbage of [
      bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      new Uint8Array([0, 0]),
      new Uint8Array([0xff, 0xff, 1, 2, 3]),
      new Uint8Array([0, 1, 1]),
      new Uint8Array([0x16, 0x03, 0x01, 0x02, 0x00]),
      randomBytes(5000),
    ]
  ) {
    const stranger = await Stranger.knock(core);
    await stranger.send(garbage);
    assert.equal(await stranger.closed(), 0, "a stranger learns nothing");
    stranger.close();
  }
  return /handshake/.source;
});

attackTest("another cluster's secret is refused by both sides", async (core, start) => {
  const other = start({ site: "foreign", secrets: [new Uint8Array(32).fill(9)], parent: core });
  await until("the dialer notices", () => other.log.some(({ event }) => event === "link.dial_failed"));
  assert.match(String(other.log[0]?.reason), /wrong proof/);
  await other.hub.close();
  return "closed during the handshake|wrong proof|connection|reset|pipe";
});

attackTest(
  "a stranger that goes on without the acceptor's proof being right for it is refused (HK1; proof.ts PV2)",
  async (core) => {
    const stranger = await Stranger.knock(core);
    await stranger.message(helloOf("evil"));
    const answer = decodeAcceptorHello(await stranger.readMessage());
    assert.ok(answer);
    await stranger.message(encodeDialerProof(answer.proof)); // reflected
    assert.equal(await stranger.closed(), 0);
    stranger.close();
    return "wrong proof";
  },
);

attackTest("a recorded handshake proves nothing when it is replayed (HK2)", async (core) => {
  const hello = helloOf("edge-9");
  const first = await Stranger.knock(core);
  await first.message(hello);
  const answer = decodeAcceptorHello(await first.readMessage());
  assert.ok(answer);
  const { dialerProof } = deriveKeys(SECRET, transcript(hello, answer.covered));
  first.close(); // a member that was cut off before its proof arrived
  await until("the first is over", () => core.hub.status().refused === 1);
  const second = await Stranger.knock(core);
  await second.message(hello);
  const fresh = decodeAcceptorHello(await second.readMessage());
  assert.notDeepEqual(fresh?.hello.nonce, answer.hello.nonce);
  await second.message(encodeDialerProof(dialerProof));
  assert.equal(await second.closed(), 0);
  second.close();
  assert.equal(core.hub.status().refused, 2);
  return "closed during the handshake|reset|wrong proof";
});

attackTest("a changed hello fails the proof, whichever bit is changed (proof.ts PV1)", async (core) => {
  const hello = helloOf("edge-9");
  let refused = 0;
  for (let bit = 8 * 5; bit < 8 * hello.length; bit += 7) {
    const changed = hello.slice();
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const stranger = await Stranger.knock(core);
    // The dialer sent `hello`; somebody between changed it. So the dialer's proof covers the original.
    await stranger.message(changed);
    const message = await stranger.readMessage();
    const answer = decodeAcceptorHello(message);
    if (answer) {
      await stranger.message(
        encodeDialerProof(deriveKeys(SECRET, transcript(hello, answer.covered)).dialerProof),
      );
    }
    assert.equal(await stranger.closed(), 0);
    stranger.close();
    refused++;
  }
  await until("all of them were counted", () => core.hub.status().refused === refused);
  return ".";
});

attackTest(
  "a downgraded version is not spoken, and an offer that was lowered fails the proof",
  async (core) => {
    for (const [versionLowest, versionHighest] of [[0, 0], [2, 9], [255, 255], [3, 2]] as const) {
      const stranger = await Stranger.knock(core);
      await stranger.message(helloOf("edge-9", { versionLowest, versionHighest }));
      assert.equal(await stranger.closed(), 0);
      stranger.close();
    }
    return "versions 0 to 0";
  },
);

attackTest("a connection to oneself, or meant for another site, is refused", async (core) => {
  for (const hello of [helloOf("core"), helloOf("edge-9", { target: "cloud" })]) {
    const stranger = await Stranger.knock(core);
    await stranger.message(hello);
    assert.equal(await stranger.closed(), 0);
    stranger.close();
  }
  return "own id";
});

attackTest("a stranger that trickles or says nothing is closed in time", async (core) => {
  const silent = await Stranger.knock(core);
  const slow = await Stranger.knock(core);
  const hello = helloOf("edge-9");
  let done = false;
  const trickle = (async () => {
    for (let i = 0; i < hello.length && !done; i++) {
      await slow.send(i === 0 ? new Uint8Array([0]) : hello.subarray(i, i + 1));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  assert.deepEqual(await Promise.all([silent.closed(), slow.closed()]), [0, 0]);
  done = true;
  await trickle;
  silent.close();
  slow.close();
  return "no handshake in time";
}, { handshakeMs: 200 });

attackTest("many silent strangers do not keep a member out", async (core, start) => {
  const strangers: Stranger[] = [];
  for (let i = 0; i < 60; i++) strangers.push(await Stranger.knock(core));
  const late = start({ site: "late" });
  core.events.length = 0;
  assert.equal(textOf((await late.hub.request("core", "echo", bytes("in"))).head), "in");
  await until("the oldest were closed", () => core.hub.status().refused >= 60 - 8);
  await late.hub.close();
  await until("it has left", () => core.events.length === 2);
  core.events.splice(0, 2, "+edge child");
  for (const stranger of strangers) stranger.close();
  return ".";
}, { strangersMax: 8 });

Deno.test("link attack: whether a site is admitted is not decided for a stranger, who is told nothing of it (HK3)", () =>
  withSites(TCP, async (start) => {
    const judged: string[] = [];
    const core = start({ site: "core", admit: (site) => (judged.push(site), "nobody is wanted here") });
    const stranger = await Stranger.knock(core);
    await stranger.message(helloOf("evil"));
    const answer = decodeAcceptorHello(await stranger.readMessage());
    assert.ok(answer);
    await stranger.message(encodeDialerProof(randomBytes(32)));
    assert.equal(await stranger.closed(), 0);
    stranger.close();
    const member = start({ site: "edge", parent: core });
    const isTold = () => member.log.some(({ reason }) => String(reason).includes("nobody is wanted here"));
    await until("a member is told", isTold);
    assert.deepEqual(new Set(judged), new Set(["edge"]));
  }));

Deno.test("link attack: a false site that answers at the parent's address learns nothing and is given up", () =>
  withSites(TCP, async (start) => {
    const listener = TCP.listen({ hostname: "127.0.0.1", port: 0 });
    const child = start({ site: "edge", parent: { site: "core", address: listener.address } });
    const arrival = await listener.accept();
    assert.ok(arrival);
    const into = new Uint8Array(1024);
    const count = await arrival.connection.read(into) ?? 0;
    const hello = decodeDialerHello(into.slice(2, count));
    assert.equal(hello?.site, "edge");
    // It sends the child's own hello back, then anything.
    await writeAll(arrival.connection, into.subarray(0, count));
    await until("given up", () => child.log.some(({ reason }) => String(reason).includes("malformed hello")));
    closeQuietly(arrival.connection);
    listener.close();
    assert.deepEqual(child.events, []);
  }));
