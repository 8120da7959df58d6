/** A device with the real host side: sends at random, comes back when its channel is gone, and notes all that it hears. */
import { type HostEnd, HostSide, type HostState } from "../../../functions/sessions/attach/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { Op } from "./room.ts";
import type { SimHome } from "./sim_home.ts";
import type { Wire, World } from "./world.ts";

/** What a host needs of the simulation. */
export interface Net {
  readonly world: World;
  /** A way to a home, as routes know it now; null where there is none. */
  route(): SimHome | null;
  wire(host: SimHost): Wire;
  /** Entries that the owners have. */
  logLength(): number;
  /** Outside of time: what a broken variant does to what is sent. */
  readonly note: (name: string) => void;
}

/** What a device heard, and when. */
export interface Heard {
  readonly content: string;
  readonly sequence: number;
  /** Entries that the owners had then. */
  readonly logged: number;
  readonly atMs: number;
}

/** See the file's header. */
export class SimHost {
  readonly name: string;
  readonly side: HostSide;
  /** What it sent, from this sequence on. */
  readonly firstSent: number;
  readonly sent: string[] = [];
  readonly heard: Heard[] = [];
  readonly firstHeard: number;
  readonly rejected: number[] = [];
  /** The most that was acknowledged, with what the owners had then. */
  readonly acknowledged: { readonly count: number; readonly logged: number }[] = [];
  end: HostEnd | null = null;
  endedMs = 0;
  /** When it was last welcome. */
  openUntilMs = 0;
  isClosing = false;
  /** Its program has died. */
  isDead = false;
  /** Another device has spoken for its peer while it lived. */
  isContested = false;
  wire: Wire | null = null;
  /** Devices that were made of what this one had saved. */
  readonly origin: SimHost | null;
  /** How many programs have begun with what it goes on from. */
  readonly program: number;
  readonly #net: Net;
  readonly #draws: Draws;
  #isConnecting = false;

  constructor(
    name: string,
    net: Net,
    draws: Draws,
    saved?: { readonly state: HostState; readonly of: SimHost },
  ) {
    this.name = name;
    this.#net = net;
    this.#draws = draws;
    this.origin = saved?.of ?? null;
    const { of, state } = saved ?? {};
    this.program = (of?.program ?? 0) + 1;
    this.firstSent = 1;
    if (of !== undefined && state !== undefined) {
      this.sent.push(...of.sent.slice(0, state.first - 1 + state.messages.length));
    }
    this.firstHeard = (state?.received ?? 0) + 1;
    this.side = new HostSide({
      kind: "client",
      instance: draws.integer(1, 2 ** 40),
      clock: net.world,
      stalledMs: 4_000,
      silentMs: 1_500,
      saved: state,
      program: this.program,
      listener: {
        message: (message, sequence) => {
          const content = typeof message === "string"
            ? message
            : `bytes ${new TextDecoder().decode(message)}`;
          this.#hear(content, sequence);
        },
        rejected: (sequence) => this.rejected.push(sequence),
        acknowledged: (count) => this.acknowledged.push({ count, logged: net.logLength() }),
        lost: (why) => {
          net.note(`lost: ${why.kind}`);
          this.#again();
        },
        closed: (end) => {
          net.note(`closed: ${end.kind === "refused" ? end.code : "bye"}`);
          if (end.kind === "bye" && end.isRemote && end.code !== 1000) {
            const content = `kicked ${end.code} ${end.reason}`;
            this.#hear(content, this.side.received);
          }
          this.end = end;
          this.endedMs = net.world.nowMs();
        },
      },
    });
  }

  #hear(content: string, sequence: number): void {
    this.heard.push({ content, sequence, logged: this.#net.logLength(), atMs: this.#net.world.nowMs() });
  }

  start(): void {
    this.#again(0);
  }

  send(ops: readonly Op[]): void {
    const text = `${this.name}.${this.sent.length + 1} ${ops.join(" ")}`;
    const message = this.#draws.chance(0.3) ? new TextEncoder().encode(text) : text;
    if (this.side.send(message) !== null) this.sent.push(text);
  }

  close(): void {
    this.isClosing = true;
    this.side.close(1000, "done");
  }

  die(): void {
    this.isDead = true;
    this.side.abandon();
    this.wire?.break();
  }

  /** Another network, or a better site: the channel that there is is given up. */
  reconnect(): void {
    if (this.side.stage !== "closed") this.#connect();
  }

  #again(ms = this.#draws.integer(10, 250)): void {
    if (this.#isConnecting) return;
    this.#isConnecting = true;
    this.#net.world.at(ms, () => {
      this.#isConnecting = false;
      if (this.side.stage === "apart") this.#connect();
    });
  }

  #connect(): void {
    const home = this.#net.route();
    if (home === null) return this.#again();
    const wire = this.#net.wire(this);
    this.wire = wire;
    // The way there takes time: a home that has gone meanwhile never answers.
    this.#net.world.at(this.#draws.integer(0, 30), () => {
      if (home.isDead) return wire.break();
      home.now(() => {
        const reader = home.side.accept(wire.homeEnd, "client");
        wire.join("home", {
          frame: (bytes) => home.now(() => reader.frame(bytes)),
          broken: () => home.now(() => reader.broken()),
        });
      });
    });
    const reader = this.side.connected(wire.hostEnd);
    wire.join("host", {
      frame: (bytes) => {
        reader.frame(bytes);
      },
      broken: () => reader.broken(),
    });
  }
}
