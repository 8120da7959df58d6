/**
 * Clients of stateful sessions: a device with the host side of the client library, which roams from site to site, and a
 * plain WebSocket, whose host side is its gateway. Both note all that they hear.
 */
import { type HostEnd, HostSide, SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import { HostLog, type Taken } from "../../functions/sessions/sealed/mod.ts";
import type { MessageSocket } from "../../runtime/gateway/message_socket.ts";
import type { Draws } from "../sim/random.ts";
import type { World } from "../sim/world.ts";
import type { Site } from "./site.ts";
import type { Wire } from "./wire.ts";

/** What clients need of the run. */
export interface ClientPorts {
  readonly world: World;
  readonly draws: Draws;
  readonly site: () => Site;
  readonly wire: (gateway: Site) => Wire;
  readonly probe: (name: string) => void;
}

const utf8 = new TextEncoder(), text = new TextDecoder();
const textOf = (message: string | Uint8Array): string =>
  typeof message === "string" ? message : text.decode(message);

/** With the client library's host side. */
export class Device {
  readonly name: string;
  readonly session: StatefulName;
  readonly sent: string[] = [];
  readonly heard: string[] = [];
  readonly rejected: number[] = [];
  acknowledged = 0;
  end: HostEnd | null = null;
  isClosing = false;
  /** Time passed at once between when it last got a way to its session and its end: long timers come due then. */
  isNapped = false;
  #sleptMs = 0;
  /** Its program has died. */
  isDead = false;
  readonly #ports: ClientPorts;
  readonly #host: HostSide;
  readonly #wires = new Set<Wire>();
  #isLooking = false;

  constructor(name: string, session: StatefulName, ports: ClientPorts) {
    const { world, draws, probe } = this.#ports = ports;
    this.name = name;
    this.session = session;
    this.#host = new HostSide({
      ...{ kind: "client", instance: draws.integer(1, 2 ** 40), stalledMs: 4_000, silentMs: 1_500 },
      log: new CountedLog(probe),
      clock: { nowMs: () => world.nowMs, after: (ms, run) => world.after(ms, run) },
      listener: {
        message: (message) => void this.heard.push(textOf(message)),
        rejected: (sequence) => void this.rejected.push(sequence),
        acknowledged: (count) => this.acknowledged = count,
        lost: ({ kind }) => {
          probe(`device lost: ${kind}`);
          this.#look();
        },
        closed: (end) => {
          this.end = end;
          this.isNapped = world.sleptMs > this.#sleptMs;
          probe(`device ended: ${end.kind === "bye" ? end.code : end.code}`);
        },
      },
    });
  }

  /** Its id in the session; null: it was never welcomed. */
  get peer(): string | null {
    return this.#host.identity?.id ?? null;
  }

  get isOpen(): boolean {
    return this.#host.stage === "open";
  }

  get isOver(): boolean {
    return this.end !== null || this.isDead;
  }

  start(): void {
    this.#look(0);
  }

  send(ops: string): void {
    const said = `${this.name}.${this.sent.length + 1} ${ops}`;
    const message = this.#ports.draws.chance(0.3) ? utf8.encode(said) : said;
    if (this.#host.send(message) !== null) this.sent.push(said);
  }

  close(): void {
    this.isClosing = true;
    this.#host.close(1000, "done");
  }

  die(): void {
    this.isDead = true;
    this.#host.abandon();
    this.cut();
  }

  /** Another network, or a better site. */
  roam(): void {
    if (this.#host.stage !== "closed") this.#connect();
  }

  /** All of its channels break. */
  cut(): void {
    for (const wire of this.#wires) wire.break();
    this.#wires.clear();
  }

  #look(ms = this.#ports.draws.between(10, 250)): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#ports.world.after(ms, () => {
      this.#isLooking = false;
      if (this.#host.stage === "apart") this.#connect();
    });
  }

  #connect(): void {
    const { site, world, draws, wire: wireOf } = this.#ports;
    const gateway = site(), { process } = gateway;
    if (process === null) return this.#look();
    const wire = wireOf(gateway);
    this.#wires.add(wire);
    world.after(draws.between(0, 20), () => {
      if (wire.isBroken) return;
      const { session: address } = this;
      process.attacher.attach({ address, token: null, protocols: [SUBPROTOCOL] }).then(
        ({ socket }) => relay(socket, wire, () => gateway.process === process),
        () => wire.closed(),
      );
    });
    const reader = this.#host.connected(wire.device);
    wire.join("device", {
      frame: (bytes) => {
        const wasOpen = this.isOpen;
        reader.frame(bytes);
        if (this.isOpen && !wasOpen) this.#sleptMs = world.sleptMs;
      },
      broken: () => {
        this.#wires.delete(wire);
        reader.broken();
      },
    });
  }
}

/** The log of a session that its clients hold, as the library has it. */
class CountedLog extends HostLog {
  readonly #probe: (name: string) => void;

  constructor(probe: (name: string) => void) {
    super();
    this.#probe = probe;
  }

  override take(epoch: number, record: Uint8Array): Taken {
    const taken = super.take(epoch, record);
    this.#probe(`device: record ${taken}`);
    return taken;
  }
}

/** A gateway's end of a wire, as long as it lives. */
function relay(socket: MessageSocket, wire: Wire, isAlive: () => boolean): void {
  wire.join("gateway", {
    frame: (bytes) => void (isAlive() && socket.send(new Uint8Array(bytes))),
    broken: () => isAlive() && socket.close(1001, ""),
  });
  void (async () => {
    for (;;) {
      const event = await socket.next();
      if (!isAlive()) return;
      if (event.kind === "close") return wire.closed();
      wire.toDevice(typeof event.data === "string" ? utf8.encode(event.data) : event.data);
    }
  })();
}

/** A plain WebSocket: what it sends, and hears, as long as its gateway lives. */
export class PlainClient {
  readonly name: string;
  readonly session: StatefulName;
  readonly sent: string[] = [];
  readonly heard: string[] = [];
  readonly #ports: Omit<ClientPorts, "wire">;
  #socket: MessageSocket | null = null;
  isOver = false;
  isAttached = false;
  #gateway: Site | null = null;
  #process: Site["process"] = null;

  constructor(name: string, session: StatefulName, ports: Omit<ClientPorts, "wire">) {
    this.name = name;
    this.session = session;
    this.#ports = ports;
  }

  start(): void {
    const { site, draws, world } = this.#ports;
    this.#gateway = site();
    const process = this.#process = this.#gateway.process;
    if (process === null) return void world.after(draws.between(50, 300), () => this.start());
    const { session: address } = this;
    process.attacher.attach({ address, token: null, protocols: [] }).then(({ socket }) => {
      this.#socket = socket;
      this.isAttached = true;
      void this.#read(socket);
    }, () => this.isOver = true);
  }

  /** Its gateway's process lives: what it is told arrives. */
  get isConnected(): boolean {
    return this.isAttached && !this.isOver && this.#gateway?.process === this.#process;
  }

  send(ops: string): void {
    const socket = this.#socket;
    if (socket === null || !this.isConnected) return;
    const said = `${this.name}.${this.sent.length + 1} ${ops}`;
    this.sent.push(said);
    void socket.send(said);
  }

  close(): void {
    this.isOver = true;
    this.#socket?.close(1000, "");
  }

  async #read(socket: MessageSocket): Promise<void> {
    for (;;) {
      const event = await socket.next();
      if (event.kind === "close") return void (this.isOver = true);
      if (this.#gateway?.process !== this.#process) return;
      this.heard.push(textOf(event.data));
    }
  }
}
