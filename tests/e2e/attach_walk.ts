/** WebSockets to stateful sessions on real processes: who is attached, from where, and what becomes of them. */
import { strict as assert } from "node:assert";
import { encodeToHome, SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import { ask } from "./client.ts";
import { eventually as eventuallySo, type TestCluster } from "./cluster.ts";

const eventually = (what: string, holds: () => boolean | Promise<boolean>): Promise<void> =>
  eventuallySo(what, async () => await holds());

/** What a desk tells all that sit at it. */
interface Said {
  readonly kind: "said" | "hello" | "tick";
  readonly from: string;
  readonly number: number;
  readonly follows: number;
  readonly total: number;
  readonly id: string;
}

/** A client with a plain WebSocket. */
class Sitter {
  readonly got: (Said | Uint8Array)[] = [];
  readonly socket: WebSocket;
  readonly opened: Promise<boolean>;
  closed: { readonly code: number; readonly reason: string } | null = null;

  constructor(cluster: TestCluster, site: string, path: string, protocols: string[] = []) {
    this.socket = new WebSocket(`${cluster.url(site).replace("http", "ws")}/desk/${path}`, protocols);
    this.socket.binaryType = "arraybuffer";
    this.opened = new Promise((resolve) => {
      this.socket.onopen = () => resolve(true);
      this.socket.onerror = () => resolve(false);
    });
    this.socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
      this.got.push(typeof data === "string" ? JSON.parse(data) as Said : new Uint8Array(data));
    this.socket.onclose = ({ code, reason }) => this.closed = { code, reason };
  }

  static async at(cluster: TestCluster, site: string, id: string): Promise<Sitter> {
    const sitter = new Sitter(cluster, site, id);
    assert.ok(await sitter.opened, `${site} ${id} takes a WebSocket`);
    await eventually("it is greeted", () => sitter.id !== "");
    return sitter;
  }

  get texts(): Said[] {
    return this.got.filter((each): each is Said => !(each instanceof Uint8Array));
  }

  /** As its session calls it. */
  get id(): string {
    return this.texts.find(({ kind }) => kind === "hello")?.id ?? "";
  }

  get said(): Said[] {
    return this.texts.filter(({ kind }) => kind === "said");
  }

  /** Numbers of its own that it heard. */
  get own(): number[] {
    return this.said.filter(({ from }) => from === this.id).map(({ number }) => number);
  }

  async hears(what: string, test: () => boolean): Promise<void> {
    await eventually(what, () => {
      assert.equal(this.closed, null);
      return test();
    });
  }

  async isClosed(code: number): Promise<void> {
    await eventually(`closed with ${code}`, () => this.closed !== null);
    assert.equal(this.closed?.code, code, this.closed?.reason);
  }
}

async function counts(cluster: TestCluster, site: string, id: string) {
  const { status, text } = await ask(`${cluster.url(site)}/desk/${id}/counts`);
  assert.equal(status, 200, text);
  return JSON.parse(text) as { said: number; opened: number; closed: number };
}

/** Messages go both ways, whatever a handler does; all see the same. */
export async function sit(cluster: TestCluster): Promise<void> {
  const [ann, bob] = [await Sitter.at(cluster, "edge-1", "a"), await Sitter.at(cluster, "edge-3", "a")];
  ann.socket.send("1");
  bob.socket.send("1");
  await ann.hears("both", () => ann.said.length === 2);
  await bob.hears("both", () => bob.said.length === 2);
  assert.deepEqual(ann.said, bob.said);
  ann.socket.send(Uint8Array.of(1, 2, 3));
  await ann.hears("bytes", () => ann.got.some((each) => each instanceof Uint8Array && each[0] === 3));
  for (const what of ["throw", "loop", "2"]) ann.socket.send(what);
  bob.socket.send("2");
  await bob.hears("what came after a handler that threw and one that looped", () => bob.said.length === 4);
  assert.deepEqual(bob.said.map(({ total }) => total), [1, 2, 3, 4]);
  ann.socket.send("tick");
  await bob.hears("a timer", () => bob.texts.some(({ kind }) => kind === "tick"));
  bob.socket.send("away");
  await bob.isClosed(4001);
  assert.equal(bob.closed?.reason, "as you wish");
  ann.socket.close(1000);
  await eventually("both have gone", async () => (await counts(cluster, "edge-2", "a")).closed === 2);
  assert.deepEqual(await counts(cluster, "edge-1", "a"), { said: 4, opened: 2, closed: 2 });
}

/** What can't be attached is refused, and garbage costs nobody but who sent it. */
export async function refuseSockets(cluster: TestCluster): Promise<void> {
  const deaf = new Sitter(cluster, "edge-1", "deaf");
  assert.equal(await deaf.opened, false, "a class without onMessage takes no WebSocket");
  const handed = await ask(`${cluster.url("edge-1")}/desk/g/hand`);
  assert.equal(handed.text, "not_available", "a stateful session hands no WebSocket over");
  const cat = await Sitter.at(cluster, "edge-2", "g");
  const garbage: (string | Uint8Array<ArrayBuffer>)[] = [
    "text",
    new Uint8Array(0),
    Uint8Array.of(1, 2, 3),
    crypto.getRandomValues(new Uint8Array(5_000)),
    encodeToHome({ kind: "leave", last: 0, code: 1000, reason: "" }),
  ];
  for (const bytes of garbage) {
    const lib = new Sitter(cluster, "edge-1", "g", [SUBPROTOCOL]);
    assert.ok(await lib.opened);
    assert.equal(lib.socket.protocol, SUBPROTOCOL);
    lib.socket.send(bytes);
    await eventually("it is sent away", () => lib.closed !== null);
  }
  const big = await Sitter.at(cluster, "edge-1", "g");
  big.socket.send(new Uint8Array(5 * 1024 * 1024));
  await big.isClosed(1009);
  cat.socket.send("1");
  await cat.hears("its own", () => cat.own.length === 1);
  cat.socket.send("over");
  await cat.isClosed(1000);
}

/** Its home is killed, and then moved, while all talk: each hears each message once, in order, and nobody is closed. */
export async function loseTheHome(cluster: TestCluster, move: (id: string, to: string) => Promise<void>) {
  const first = await Sitter.at(cluster, "edge-2", "k"); // which makes that its home
  const sitters = [
    await Sitter.at(cluster, "edge-1", "k"),
    await Sitter.at(cluster, "edge-3", "k"),
    await Sitter.at(cluster, "core-1", "k"),
  ];
  let sent = 0, isOver = false;
  const talking = (async () => {
    while (!isOver) {
      sent++;
      for (const { socket } of sitters) socket.send(`${sent}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  await eventually("they hear each other", () => sitters.every(({ own }) => own.length > 10));
  await cluster.control("kill", "edge-2");
  const before = sent;
  await eventually("they go on", () => sitters.every(({ own }) => (own.at(-1) ?? 0) > before + 20));
  await move("k", "cloud");
  const moved = sent;
  await eventually("they go on there", () => sitters.every(({ own }) => (own.at(-1) ?? 0) > moved + 20));
  isOver = true;
  await talking;
  await eventually("they have heard all", () => sitters.every(({ own }) => own.at(-1) === sent));
  await eventually("the home's own client lost it", () => first.closed !== null);
  for (const sitter of sitters) {
    assert.equal(sitter.closed, null);
    assert.deepEqual(sitter.own, Array.from({ length: sent }, (_, i) => i + 1));
    const { said } = sitter;
    for (const [i, { total, number, follows }] of said.entries()) {
      assert.equal(number, follows + 1, "each was handled once, after the one before");
      assert.equal(total, (said[0]?.total ?? 0) + i, "each hears all, in order");
    }
  }
  await cluster.control("start", "edge-2");
  await cluster.ready("edge-2");
  // One whose own site stops as planned is closed, and its session knows at once.
  await cluster.control("stop", "edge-3");
  await sitters[1]?.isClosed(1001);
  await eventually("it has gone", async () => (await counts(cluster, "edge-1", "k")).closed === 1);
  for (const { socket } of sitters) socket.close(1000);
  await cluster.control("start", "edge-3");
  await cluster.ready("edge-3");
}

/** A session that nobody talks to leaves memory; its sockets stay, and bring it back. */
export async function restUnderSockets(
  cluster: TestCluster,
  look: (id: string) => Promise<{ readonly state: string; readonly attached: number } | null>,
): Promise<void> {
  const [here, there] = [await Sitter.at(cluster, "edge-1", "r"), await Sitter.at(cluster, "edge-3", "r")];
  here.socket.send("1");
  await there.hears("the first", () => there.said.length === 1);
  await eventually("it rests", async () => (await look("r"))?.state === "resting");
  assert.equal((await look("r"))?.attached, 2);
  there.socket.send("1");
  await here.hears("the second", () => here.said.length === 2);
  assert.equal(here.said[1]?.total, 2);
  assert.equal((await look("r"))?.state, "open");
  here.socket.close(1000);
  there.socket.close(1000);
}
