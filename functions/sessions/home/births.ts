/**
 * Record of births: the owners, at the arbiter, of stateful sessions that are born here, under a number that goes into
 * their ids. It is asked for once, and again when one of those owners is lost or f is another.
 *
 * BR1  An arbiter that has lost what it knew may have lost a number, or give it out again. It asks each site for the
 *      names that it has before it goes by its disk again (rebuild.ts): from then on nothing is made here under an
 *      earlier number (`lapse`), and a session that was made so, and was not told to the arbiter then, is not begun
 *      (`isLapsed`).
 */
import type { Choice } from "../../../store/presence/choose.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type Owner } from "../log/api.ts";
import type { Reply, SiteAsk } from "../log/asks.ts";
import type { RecoveryPorts } from "./recovery.ts";

export interface BirthsPorts extends RecoveryPorts {
  readonly fellows: {
    readonly f: number;
    choose(kept: readonly SiteId[], without: (site: SiteId) => boolean, last: SiteId): Choice;
  };
}

export interface BirthRecord {
  readonly number: number;
  /** Owners of what is born under the number; this site is the first. */
  readonly owners: readonly Owner[];
  /** Number of lapses when the number was asked for (BR1). */
  readonly lapses: number;
}

export class Births {
  readonly #ports: BirthsPorts;
  #current: BirthRecord | null = null;
  #lapses = 0;
  #asking: Promise<BirthRecord> | null = null;

  constructor(ports: BirthsPorts) {
    this.#ports = ports;
  }

  /** Returns the record for the next birth. @throws HomeError */
  current(untilMs: number): Promise<BirthRecord> {
    const { fellows, isLost, disk } = this.#ports;
    const current = this.#current, isWhole = current?.owners.length === fellows.f + 1;
    if (isWhole && current.owners[0]?.disk === disk() && !current.owners.some(({ site }) => isLost(site))) {
      return Promise.resolve(current);
    }
    return this.#asking ??= this.#ask(untilMs).finally(() => this.#asking = null);
  }

  /** Gives the number up: nothing is made under it any more (BR1). */
  lapse(): void {
    this.#current = null;
    this.#lapses++;
  }

  /** Reports whether a number was given up since it was asked for (BR1). */
  isLapsed({ lapses }: BirthRecord): boolean {
    return lapses !== this.#lapses;
  }

  async #ask(untilMs: number): Promise<BirthRecord> {
    const { site, disk, arbiter } = this.#ports, lapses = this.#lapses;
    const others = await Promise.all(this.#chosen().map((one) => this.#greet(one, untilMs)));
    const owners = [{ site, disk: disk() }, ...others];
    const reply = await this.#within(arbiter(), { kind: "births", owners }, untilMs);
    if (reply?.kind === "births") {
      const record = { number: reply.number, owners, lapses };
      if (!this.isLapsed(record)) this.#current = record;
      return record;
    }
    throw new HomeError(
      "arbiter_unreachable",
      `cannot make a stateful session: the site ${arbiter()}, which has to know who keeps its log, does not answer`,
    );
  }

  #chosen(): readonly SiteId[] {
    const { fellows } = this.#ports;
    let missing = fellows.f;
    try {
      const choice = fellows.choose([], () => false, this.#ports.arbiter());
      missing = choice.missing;
      if (missing === 0) return choice.owners.slice(1);
    } catch {
      // there are not so many sites at all: said below
    }
    throw new HomeError(
      "stateful_unreachable",
      `cannot make a stateful session: ${missing} of the ${fellows.f} other sites that are to keep its log are missing`,
    );
  }

  async #greet(site: SiteId, untilMs: number): Promise<Owner> {
    const reply = await this.#within(site, { kind: "greet" }, untilMs);
    if (reply?.kind === "promised") return { site, disk: reply.disk };
    throw new HomeError(
      "stateful_unreachable",
      `cannot make a stateful session: ${site}, which is to keep its log, does not answer`,
    );
  }

  async #within(to: SiteId, ask: SiteAsk, untilMs: number): Promise<Reply | null> {
    const { nowMs, after } = this.#ports;
    const asking = this.#ports.ask(to, ask);
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const cancel = after(Math.max(0, untilMs - nowMs()), () => resolve(null));
    const reply = await Promise.race([asking.reply, late]);
    cancel();
    if (reply === null) asking.cancel();
    return reply;
  }
}
