/** The way between a client and a site, as bytes. */
import type { Channel, ChannelReader } from "../../../functions/sessions/attach/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";

type Frame = Uint8Array<ArrayBuffer>;

/** One way of it: who sends, and who hears what comes. */
class Way {
  readonly #world: World;
  readonly #delay: () => number;
  readonly #line: Line;
  readonly #lateChance: () => boolean;
  #atMs = 0;
  #isCut = false;
  #reader: ChannelReader | null = null;
  #early: Frame[] = [];

  constructor(line: Line, world: World, delay: () => number, isLate: () => boolean) {
    this.#line = line;
    this.#world = world;
    this.#delay = delay;
    this.#lateChance = isLate;
  }

  /** In order, each after a while; nothing more comes once the way is broken, but what is late. */
  send(frame: Frame): void {
    if (this.#line.isBroken) return;
    this.#atMs = Math.max(this.#atMs, this.#world.nowMs + this.#delay());
    const isLate = this.#lateChance();
    this.#world.at(this.#atMs, () => {
      // What had left already may come though its sender is gone: a first part of it.
      if (this.#line.isBroken && !isLate) this.#isCut = true;
      if (this.#line.isBroken && this.#isCut) return;
      if (this.#reader === null) this.#early.push(frame);
      else this.#reader.frame(frame);
    });
  }

  read(reader: ChannelReader): void {
    this.#reader = reader;
    for (const frame of this.#early.splice(0)) reader.frame(frame);
    if (this.#line.isBroken) reader.broken();
  }

  broken(): void {
    this.#reader?.broken();
  }
}

/** Both ways. */
export class Line {
  readonly #world: World;
  readonly #draws: Draws;
  readonly up: Way;
  readonly down: Way;
  isBroken = false;

  /** @param slowMs that a frame takes at most. */
  constructor(world: World, draws: Draws, late: number, slowMs = 12) {
    this.#world = world;
    this.#draws = draws;
    const delay = () => draws.between(1, slowMs);
    this.up = new Way(this, world, delay, () => false);
    this.down = new Way(this, world, delay, () => draws.chance(late));
  }

  /** As who sends has it. @param tap hears what is sent */
  end(way: Way, tap: (frame: Frame) => void = () => {}): Channel {
    return {
      send: (frame) => {
        tap(frame);
        way.send(frame);
      },
      close: () => this.break(true),
    };
  }

  /** What was sent before a close goes out first. */
  break(isClosed = false): void {
    if (this.isBroken) return;
    const over = () => {
      if (this.isBroken) return;
      this.isBroken = true;
      const tell = () => {
        this.up.broken();
        this.down.broken();
      };
      this.#world.after(this.#draws.between(0, 30), tell);
    };
    if (isClosed) this.#world.after(13, over);
    else over();
  }
}
