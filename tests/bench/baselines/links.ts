/**
 * Links in virtual time, exact: each direction of each link has a delay and a rate, and counts what passes it.
 *
 * L1  A message occupies each link on its way for its bytes ÷ rate; its packets pass from link to link without
 *     waiting for the last (as IP does); messages that meet on a link pass it one after the other, in the order
 *     they came.
 * L2  So two messages between the same sites arrive in the order in which they were sent.
 * L3  Bytes are those of our own links: a frame's header per 32 KiB, a record's length and MAC per 64 KiB
 *     (docs/protocol/frames.md). What is below (TLS, TCP, IP) is left out for all alike. A real link puts the
 *     messages of one turn into one record, so this is the most that they take.
 * L4  What comes to a held site arrives when it is released.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { World } from "../../sim/world.ts";
import { BYTES_PER_MS, oneWayMs, route } from "./topology.ts";

const FRAME_HEADER_BYTES = 4;
const FRAME_BYTES_MAX = 32_768;
const RECORD_BYTES = 20;
const RECORD_BYTES_TARGET = 65_536;
/** A link's window for the store's messages: beyond it a sender waits. */
const WINDOW_BYTES = 4 << 20;

/** What a message takes on a link (L3). */
export function framed(bytes: number): number {
  const frames = Math.max(1, Math.ceil(bytes / FRAME_BYTES_MAX));
  const long = frames > 1 ? 4 : 0;
  return bytes + long + FRAME_HEADER_BYTES * frames +
    RECORD_BYTES * Math.max(1, Math.ceil(bytes / RECORD_BYTES_TARGET));
}

/** What passed. */
export interface Tally {
  readonly messages: number;
  /** Once a message, from its sender to its receiver. */
  readonly bytes: number;
  /** Once a link that it passes. */
  readonly linkBytes: number;
}

interface Lane {
  freeAtMs: number;
}

/** All links of the deployment. */
export class VirtualLinks {
  readonly #world: World;
  readonly #lanes = new Map<string, Lane>();
  readonly #flying = new Map<string, number>();
  readonly #held = new Map<SiteId, (() => void)[]>();
  #tally: Tally = { messages: 0, bytes: 0, linkBytes: 0 };

  constructor(world: World) {
    this.#world = world;
  }

  get tally(): Tally {
    return this.#tally;
  }

  /** Sends a message of so many bytes; calls back on arrival. Resolves when there is room for another. */
  async send(from: SiteId, to: SiteId, bytes: number, arrived: () => void): Promise<void> {
    const size = framed(bytes), pair = `${from}>${to}`;
    const path = route(from, to);
    const { messages, bytes: before, linkBytes } = this.#tally;
    this.#tally = {
      messages: messages + 1,
      bytes: before + size,
      linkBytes: linkBytes + size * (path.length - 1),
    };
    this.#flying.set(pair, (this.#flying.get(pair) ?? 0) + size);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#world.at(this.#pass(path, size), () => {
      this.#flying.set(pair, (this.#flying.get(pair) ?? 0) - size);
      resolve();
      const held = this.#held.get(to);
      if (held === undefined) arrived();
      else held.push(arrived);
    });
    if ((this.#flying.get(pair) ?? 0) > WINDOW_BYTES) await promise;
  }

  /** Sends, and resolves on arrival. */
  deliver(from: SiteId, to: SiteId, bytes: number): Promise<void> {
    return new Promise((resolve) => void this.send(from, to, bytes, resolve));
  }

  /** L1: when its last byte has arrived. */
  #pass(path: readonly SiteId[], size: number): number {
    const takesMs = size / BYTES_PER_MS;
    let firstMs = this.#world.nowMs, lastMs = firstMs;
    for (const [i, to] of path.slice(1).entries()) {
      const from = path[i] ?? "", name = `${from}>${to}`;
      const lane = this.#lanes.get(name) ?? { freeAtMs: 0 };
      this.#lanes.set(name, lane);
      const begunMs = Math.max(firstMs, lane.freeAtMs);
      lane.freeAtMs = Math.max(begunMs + takesMs, lastMs);
      firstMs = begunMs + oneWayMs(from, to);
      lastMs = lane.freeAtMs + oneWayMs(from, to);
    }
    return lastMs;
  }

  /** Nothing arrives at a site until it is released (L4). */
  hold(site: SiteId): void {
    this.#held.set(site, []);
  }

  release(site: SiteId): void {
    const held = this.#held.get(site) ?? [];
    this.#held.delete(site);
    for (const arrived of held) arrived();
  }
}

/** What passed between two tallies. */
export const between = (from: Tally, to: Tally): Tally => ({
  messages: to.messages - from.messages,
  bytes: to.bytes - from.bytes,
  linkBytes: to.linkBytes - from.linkBytes,
});
