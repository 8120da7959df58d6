/**
 * A channel between a device and the gateway of a site, in virtual time: slow, broken at any frame, with frames that
 * come twice or too early, and with what was sent on an old one still coming while a newer one is there.
 */
import type { Channel, ChannelReader } from "../../functions/sessions/attach/mod.ts";
import type { Draws } from "../sim/random.ts";
import type { World } from "../sim/world.ts";

/** How channels are. */
export interface WirePlan {
  /** Milliseconds that a frame takes, at most. */
  readonly delayMs: number;
  /** That a channel breaks with a frame. */
  readonly breaks: number;
  /** That a frame with data comes twice, or before the one before it. */
  readonly garbles: number;
}

/** What a wire is made of. */
export interface WireParts {
  readonly world: World;
  readonly draws: Draws;
  readonly plan: () => WirePlan;
  /** A frame is sent; true: it breaks there. */
  readonly sent: () => boolean;
  /** A frame to the device, as it goes; null: it is not sent. */
  readonly meddle: (frame: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer> | null;
}

type End = "device" | "gateway";

/** See the file's header. */
export class Wire {
  readonly device: Channel;
  readonly #parts: WireParts;
  readonly #readers: Record<End, ChannelReader | null> = { device: null, gateway: null };
  readonly #lastMs: Record<End, number> = { device: 0, gateway: 0 };
  readonly #early: Record<End, (() => void)[]> = { device: [], gateway: [] };
  #isBroken = false;

  constructor(parts: WireParts) {
    this.#parts = parts;
    this.device = {
      send: (frame) => this.#send("gateway", frame),
      close: () => this.#close("gateway"),
    };
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Who reads an end. */
  join(end: End, reader: ChannelReader): void {
    this.#readers[end] = reader;
    for (const bring of this.#early[end].splice(0)) bring();
  }

  /** From the gateway to the device. */
  toDevice(frame: Uint8Array<ArrayBuffer>): void {
    const sent = this.#parts.meddle(frame);
    if (sent !== null) this.#send("device", sent);
  }

  /** The gateway closes it: what was sent before comes. */
  closed(): void {
    this.#close("device");
  }

  /** Nothing comes through any more; its ends find out, each in its time. */
  break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const { world, draws, plan } = this.#parts;
    for (const end of ["device", "gateway"] as const) {
      world.after(draws.between(0, 2 * plan().delayMs), () => this.#readers[end]?.broken());
    }
  }

  #send(to: End, frame: Uint8Array<ArrayBuffer>): void {
    const { draws, plan, sent, world } = this.#parts;
    if (this.#isBroken) return;
    const { breaks, garbles } = plan();
    if (sent() || draws.chance(breaks)) return this.break();
    const hasData = ((frame[0] ?? 0) & 0x80) !== 0;
    if (hasData && draws.chance(garbles)) {
      if (draws.chance(0.5)) this.#bring(to, frame);
      else return void world.after(draws.between(5, 30), () => this.#bring(to, frame));
    }
    this.#bring(to, frame);
  }

  #bring(to: End, frame: Uint8Array): void {
    const bring = () => {
      const reader = this.#readers[to];
      if (reader === null) this.#early[to].push(bring);
      else if (!this.#isBroken) reader.frame(frame);
    };
    this.#parts.world.after(this.#wait(to), bring);
  }

  /** In order, in each direction. */
  #wait(to: End): number {
    const { world, draws, plan } = this.#parts;
    const atMs = this.#lastMs[to] = Math.max(
      this.#lastMs[to],
      world.nowMs + draws.between(0, plan().delayMs),
    );
    return atMs - world.nowMs;
  }

  #close(to: End): void {
    this.#parts.world.after(this.#wait(to), () => {
      if (this.#isBroken) return;
      this.#isBroken = true;
      this.#readers[to]?.broken();
    });
  }
}
