/**
 * Conditions of this site's links, for development, benchmarks and chaos: delay, rate, loss, cuts. Each side shapes
 * what it sends and holds back what it receives, so a cut at one side stops both directions.
 *
 * EM1  Order is kept whatever the conditions, also when they change.
 * EM2  A cut loses nothing by itself: bytes are held, and go on if it heals before the connection is taken for dead.
 *      Neither side learns from the other's closing while it lasts.
 */
import { PreciseTimer } from "./precise_timer.ts";

/** A link's properties; the round trip is split evenly between the directions. */
export interface LinkShape {
  readonly rttMs: number;
  /** Megabits per second, each direction. */
  readonly mbps: number;
  /** Milliseconds added per record: uniform between 0 and this. */
  readonly jitterMs: number;
  /** Probability that a record is lost: it arrives one round trip and 200 ms later. */
  readonly loss: number;
}

/** Conditions of the link to one site. */
export class Conditions {
  shape: LinkShape | null;
  #cut = false;
  #healed = Promise.withResolvers<void>();

  constructor(shape: LinkShape | null) {
    this.shape = shape;
    this.#healed.resolve();
  }

  get cut(): boolean {
    return this.#cut;
  }

  set cut(cut: boolean) {
    if (cut === this.#cut) return;
    this.#cut = cut;
    if (cut) this.#healed = Promise.withResolvers();
    else this.#healed.resolve();
  }

  /** Resolves when the link is not cut. */
  healed(): Promise<void> {
    return this.#healed.promise;
  }
}

/** Changes the conditions of a hub's links while it runs, also of links that do not exist yet. */
export interface LinkControl {
  /** Sets the properties of a link; null: as fast as it goes. */
  shape(site: string, shape: LinkShape | null): void;
  shapeOf(site: string): LinkShape | null;
  /** Cuts a link: no byte passes any more, in either direction, until `heal`. */
  cut(site: string): void;
  heal(site: string): void;
  /** Cuts all links but those to the sites given, also links to come. */
  cutAll(except?: readonly string[]): void;
  healAll(): void;
  cuts(): readonly string[];
}

export class Emulation implements LinkControl {
  readonly #emulate: (site: string) => LinkShape | null;
  readonly #conditions = new Map<string, Conditions>();
  /** Sites that a cut of everything spared; null when there is none. */
  #spared: ReadonlySet<string> | null = null;
  readonly timer = new PreciseTimer();
  readonly random: () => number;
  /** Links that are cut from their first byte on, until `heal`. */
  readonly #begins: (site: string) => boolean;

  constructor(
    emulate: (site: string) => LinkShape | null,
    random: () => number,
    isCut: (site: string) => boolean = () => false,
  ) {
    this.#emulate = emulate;
    this.random = random;
    this.#begins = isCut;
  }

  of(site: string): Conditions {
    let conditions = this.#conditions.get(site);
    if (!conditions) {
      conditions = new Conditions(this.#emulate(site));
      conditions.cut = this.#begins(site) || (this.#spared !== null && !this.#spared.has(site));
      this.#conditions.set(site, conditions);
    }
    return conditions;
  }

  shape(site: string, shape: LinkShape | null): void {
    this.of(site).shape = shape;
  }

  shapeOf(site: string): LinkShape | null {
    return this.of(site).shape;
  }

  cut(site: string): void {
    this.of(site).cut = true;
  }

  heal(site: string): void {
    if (this.#spared) this.#spared = new Set([...this.#spared, site]);
    this.of(site).cut = false;
  }

  cutAll(except: readonly string[] = []): void {
    this.#spared = new Set(except);
    for (const [site, conditions] of this.#conditions) {
      if (!this.#spared.has(site)) conditions.cut = true;
    }
  }

  healAll(): void {
    this.#spared = null;
    for (const conditions of this.#conditions.values()) conditions.cut = false;
  }

  cuts(): readonly string[] {
    return [...this.#conditions].filter(([, { cut }]) => cut).map(([site]) => site);
  }
}
