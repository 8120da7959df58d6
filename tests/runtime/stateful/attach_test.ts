/** WebSockets to stateful sessions over real homes, logs and replays, without processes or sockets. */
import assert from "node:assert/strict";
import { encodeCall } from "../../../functions/calls/call.ts";
import { type From, Session } from "../../../functions/class/session.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { value } from "../../../functions/tracked/mod.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { SUBPROTOCOL } from "../../../functions/sessions/attach/mod.ts";
import type { MessageSocket } from "../../../runtime/gateway/message_socket.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { Attacher } from "../../../runtime/stateful/attacher.ts";
import { SYSTEM_CLOCK } from "../../../runtime/stateful/clock.ts";
import { PeerWays, WayRefused } from "../../../functions/sessions/serve/peer_ways.ts";
import { Disks, type MemoryHost, memoryHost } from "../../functions/sessions/serve/memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };
const MANY = 300;

/** Numbers what it hears, tells all, and does what it is told. */
class Robot extends Session {
  heard = value(0);
  gone: string[] = [];

  override onOpen(from: From) {
    if (this.heard.get() > 1_000) throw new Error("no more of you");
    from.send(`hello ${from.id}`);
  }
  override onMessage(message: string | Uint8Array, from: From) {
    if (message === "throw") throw new Error("as it was asked to");
    if (message === "full") return this.heard.set(1_001);
    if (message === "end") return this.end();
    if (message === "much") { for (let i = 0; i < 8; i++) from.send("x".repeat(1 << 20)); }
    this.heard.set(this.heard.get() + 1);
    const said = `${this.heard.get()} ${from.id} ${String(message).slice(0, 20)}`;
    for (const client of this.clients) client.send(said);
  }
  finish() {
    this.end();
  }
  override onClose(from: From) {
    this.gone.push(from.id);
    for (const client of this.clients) client.send(`gone ${from.id}`);
  }
}
const robot = () => new Robot() as unknown as SessionObject;

/** A site's way to whatever host lives now; its clients go with it. */
class Gateway extends Attacher {
  readonly clients: Client[] = [];
  readonly #of: () => MemoryHost;

  constructor(of: () => MemoryHost, services: ConstructorParameters<typeof Attacher>[0]) {
    super(services);
    this.#of = of;
  }

  async at(isReading = true): Promise<Client> {
    const { socket } = await this.attach({ address: NAME, token: null, protocols: [] });
    const client = new Client(socket, isReading);
    this.clients.push(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { socket } of this.clients) socket.close(1000, "");
    while (this.#of().host.counts.channels > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function gateway(of: () => MemoryHost, socketsMax = 100): Gateway {
  let instance = 0;
  const open: PeerWays["open"] = async (name, token) => {
    const { homes, host } = of();
    const links = { request: () => Promise.reject(new Error("there is one site")) };
    const nobody = () => () => {};
    const ways = new PeerWays({
      ...{ site: "cloud", homes, host, links, sites: () => new Map(), clock: SYSTEM_CLOCK },
      fellows: { standing: () => "unknown", watch: nobody, onChange: nobody },
      failed: (_, error) => void Promise.reject(error),
    });
    return await ways.open(name, token);
  };
  return new Gateway(of, {
    ways: { open },
    instance: () => ++instance,
    socketsMax,
    count: () => {},
    failed: (_, error) => void Promise.reject(error),
  });
}

/** A client, reading. */
class Client {
  readonly got: string[] = [];
  closed: number | null = null;
  #changed = Promise.withResolvers<void>();
  readonly socket: MessageSocket;

  constructor(socket: MessageSocket, isReading = true) {
    this.socket = socket;
    if (isReading) void this.read();
  }

  async read(): Promise<void> {
    for (;;) {
      const event = await this.socket.next();
      if (event.kind === "close") this.closed = event.code;
      else this.got.push(typeof event.data === "string" ? event.data : `${event.data.length} bytes`);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
      if (event.kind === "close") return;
    }
  }

  get id(): string {
    return this.got[0]?.split(" ")[1] ?? "";
  }
  /** What it said itself, as all heard it. */
  get own(): string[] {
    return this.got.filter((text) => text.includes(` ${this.id} `)).map((text) => text.split(" ")[2] ?? "");
  }
  /** The numbers of all that was said. */
  get numbers(): number[] {
    return this.got.map((text) => Number(text.split(" ")[0])).filter((n) => n > 0);
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await this.#changed.promise;
  }
}

const oneAfterTheOther = (numbers: readonly number[]) =>
  assert.deepEqual(numbers, Array.from(numbers, (_, i) => (numbers[0] ?? 0) + i));

/** All send `MANY` messages while something happens; each message is heard once and in order, by all. */
async function talk(clients: readonly Client[], meanwhile: (round: number) => unknown): Promise<void> {
  for (const client of clients) await client.until(() => client.id !== "");
  for (let i = 1; i <= MANY; i++) {
    for (const { socket } of clients) await socket.send(`${i}`);
    if (i % 50 === 0) await meanwhile(i / 50);
    if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
  for (const client of clients) {
    await client.until(() => client.own.length >= MANY);
    assert.deepEqual(client.own, Array.from({ length: MANY }, (_, i) => `${i + 1}`));
    assert.equal(client.closed, null);
  }
  const last = MANY * clients.length;
  for (const client of clients) {
    await client.until(() => client.numbers.includes(last));
    oneAfterTheOther(client.numbers);
  }
}

Deno.test("what several clients send is handled once and in order, and told to all (PP1)", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  await talk([await attacher.at(), await attacher.at()], () => {});
  assert.deepEqual([host.host.counts.attached, host.host.counts.channels, attacher.sockets], [2, 2, 2]);
});

Deno.test("clients go on when isolates are lost, in whatever turn (SP1)", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  await talk([await attacher.at(), await attacher.at()], () => host.loseIsolates());
});

Deno.test("a message in whose handler the isolate ended is given up, and those after it go on (SP3)", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  const client = await attacher.at();
  await client.until(() => client.id !== "");
  for (let round = 0; round < 5; round++) {
    const before = client.got.length;
    for (const what of ["a", "b", "c"]) await client.socket.send(what);
    host.loseIsolates("r");
    await client.socket.send("d");
    await client.until(() => client.own.at(-1) === "d" && client.got.length > before);
    oneAfterTheOther(client.numbers);
    const heard = client.got.slice(before).map((text) => text.split(" ")[2]).join("");
    assert.ok(["bcd", "abcd"].includes(heard), heard);
  }
});

Deno.test("a message in whose handler isolates end is given up, and none that came with it (SP3, H4)", async () => {
  const held: { host?: MemoryHost } = {};
  let ends = 0;
  class Poisoned extends Robot {
    override onMessage(message: string | Uint8Array, from: From) {
      if (message !== "poison") return super.onMessage(message, from);
      ends++;
      held.host?.hang("r"); // what was done before it has not left yet
    }
  }
  await using host = held.host = await memoryHost(() => new Poisoned() as unknown as SessionObject);
  await using attacher = gateway(() => host);
  const client = await attacher.at();
  await client.until(() => client.id !== "");
  const said: string[] = [];
  for (const [round, before] of [0, 1, 5, 40].entries()) {
    const words = Array.from({ length: before + 5 }, (_, i) => `${round}.${i}`);
    said.push(...words);
    const all = words.toSpliced(before, 0, "poison", ...round === 2 ? ["poison"] : []);
    await Promise.all(all.map((word) => client.socket.send(word)));
    await client.until(() => client.own.at(-1) === words.at(-1) || ends > 20);
    assert.deepEqual(client.own, said);
    oneAfterTheOther(client.numbers);
  }
  assert.ok(ends <= 2 + 2 + 3 + 2, `${ends} isolates ended for 5 messages`);
});

Deno.test("clients go on with other code", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  let version = 1;
  await talk(
    [await attacher.at(), await attacher.at()],
    () => host.deploy(`v${++version}`, robot),
  );
});

Deno.test("a session rests under its clients, and what they send brings it back", async () => {
  await using host = await memoryHost(robot, { idleMs: 1 });
  await using attacher = gateway(() => host);
  const clients = [await attacher.at(), await attacher.at()];
  for (const client of clients) await client.until(() => client.id !== "");
  for (let round = 1; round <= 2; round++) {
    while (host.host.look(NAME)?.state !== "resting") await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(host.host.look(NAME)?.attached, 2);
    await clients[round % 2]?.socket.send(`${round}`);
    for (const client of clients) await client.until(() => client.numbers.length === round);
  }
  clients[0]?.socket.close(1000, "");
  await clients[1]?.until(() => clients[1]?.got.at(-1) === `gone ${clients[0]?.id}`);
});

Deno.test("clients elsewhere go on with the next process of the home, over its disk (PP1)", async () => {
  const disks = new Disks();
  let host = await memoryHost(robot, { disks });
  try {
    await using attacher = gateway(() => host);
    await talk([await attacher.at(), await attacher.at()], async (round) => {
      if (round % 3 !== 0) return;
      await host[Symbol.asyncDispose]();
      host = await memoryHost(robot, { disks });
    });
  } finally {
    await host[Symbol.asyncDispose]();
  }
});

Deno.test("whom the session takes not is refused; whom it ends for is closed", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  const client = await attacher.at();
  await client.until(() => client.id !== "");
  await client.socket.send("throw");
  await client.socket.send("full");
  await client.socket.send("last");
  await client.until(() => client.own.at(-1) === "last");
  await assert.rejects(
    attacher.at(),
    (error) => error instanceof Problem && /no more/.test(error.message),
  );
  assert.equal(attacher.sockets, 1);
  await client.socket.send("end");
  await client.until(() => client.closed !== null);
  assert.equal(client.closed, 1000);
  const next = await attacher.at();
  await next.until(() => next.id !== "");
  assert.equal(host.host.counts.attached, 1, "it began anew");
});

Deno.test("a session that ends keeps its last answers for who asks again, but no clients", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host);
  const client = await attacher.at();
  await client.until(() => client.id !== "");
  const bytes = encodeCall({ kind: "rpc", method: "finish", args: encodeValue([]) });
  await host.host.request(NAME, { request: "last", chain: [], bytes, token: null }); // and nobody says to have heard
  await client.until(() => client.closed !== null);
  assert.equal(client.closed, 1000);
  const next = await attacher.at();
  await next.until(() => next.id !== "");
  await next.socket.send("on");
  await next.until(() => next.own.at(-1) === "on");
  assert.deepEqual(next.numbers, [1]);
});

Deno.test("bounds: a message too long, a client that does not read, one socket more (PP2)", async () => {
  await using host = await memoryHost(robot);
  await using attacher = gateway(() => host, 3);
  const [long, slow, other] = [
    await attacher.at(),
    await attacher.at(false),
    await attacher.at(),
  ];
  await assert.rejects(attacher.at(), { code: "overloaded" });
  await long.socket.send(new Uint8Array(4 * 1024 * 1024 + 1));
  await long.until(() => long.closed !== null);
  assert.equal(long.closed, 1009);
  await slow.socket.send("much");
  await other.until(() => other.got.filter((text) => text.startsWith("gone")).length === 2);
  await slow.read();
  assert.equal(slow.closed, 1008);
  await other.socket.send("on");
  await other.until(() => other.own.at(-1) === "on");
});

Deno.test("a client of the library is told in a frame why it is not taken", async () => {
  const ways = { open: () => Promise.reject(new WayRefused("stateful_parked", "it stands still")) };
  const attacher = new Attacher({
    ways,
    instance: () => 1,
    socketsMax: 1,
    count: () => {},
    failed: () => {},
  });
  const { socket, protocol } = await attacher.attach({
    address: NAME,
    token: null,
    protocols: [SUBPROTOCOL],
  });
  assert.equal(protocol, SUBPROTOCOL);
  const first = await socket.next();
  assert.ok(first.kind === "message" && first.data instanceof Uint8Array);
  assert.match(new TextDecoder().decode(first.data), /stateful_parked.*it stands still/s);
  assert.deepEqual(await socket.next(), { kind: "close", code: 4000, reason: "" });
  assert.equal(attacher.sockets, 0);
});
