/**
 * What must hold of a history of owners groups. It reads what happened at sites and disks, and knows neither packets
 * nor versions.
 *
 * - conservation: what a producer was told is stored is acted on.
 * - copies: it is on f + 1 disks when the producer is told.
 * - duplicates: it is acted on once, unless somebody whose it was then was taken for dead and lived, or took another one
 *   for dead that lived, or the one that had acted died before the others knew, or more than f that had it were down at
 *   one time.
 * - choice: no suspect gets a new tuple.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Excused } from "../../sim/excuses.ts";
import type { SiteEvent } from "./owner_site.ts";

export type Told =
  & (SiteEvent | { readonly kind: "stored" | "died unsettled"; readonly site: SiteId; readonly id: string })
  & { readonly atMs: number };

export interface History {
  readonly f: number;
  readonly told: readonly Told[];
  readonly acks: readonly {
    readonly id: string;
    readonly atMs: number;
    readonly copies: number;
    readonly f: number;
  }[];
}

export interface Violation {
  readonly checker: string;
  readonly message: string;
  readonly atMs: number;
}

/** From the first disk to the acknowledgement. */
const FLIGHT_MS = 2_500;
/** So long after two sites hear each other again what one of them did meanwhile may be done again. */
const SETTLING_MS = 3_000;

/** A site took another one for dead that lived. */
interface Mistake {
  readonly by: SiteId;
  readonly about: SiteId;
  readonly fromMs: number;
  /** It heard it again, or one of them died. */
  untilMs: number;
}

/** Who is up, and who takes whom for dead that lives. */
class Mistakes {
  readonly all: Mistake[] = [];
  readonly #up = new Set<SiteId>();

  step(event: Told): void {
    if (event.kind === "up") this.#up.add(event.site);
    else if (event.kind === "down") {
      this.#up.delete(event.site);
      this.#end(event.atMs, ({ by, about }) => by === event.site || about === event.site);
    } else if (event.kind === "suspects" && this.#up.has(event.other)) {
      this.all.push({ by: event.site, about: event.other, fromMs: event.atMs, untilMs: Infinity });
    } else if (event.kind === "trusts") {
      this.#end(event.atMs, ({ by, about }) => by === event.site && about === event.other);
    }
  }

  #end(atMs: number, isOne: (mistake: Mistake) => boolean): void {
    for (const mistake of this.all) {
      if (mistake.untilMs === Infinity && isOne(mistake)) mistake.untilMs = atMs;
    }
  }
}

/**
 * All that is wrong.
 *
 * @param excused hears each time that something is let pass.
 */
export function check({ f, told, acks }: History, excused: Excused = () => {}): Violation[] {
  const violations: Violation[] = [];
  const say = (checker: string, atMs: number, message: string) => violations.push({ checker, message, atMs });
  const acts = new Map<string, { readonly site: SiteId; readonly atMs: number }[]>();
  const deaths = new Map<string, { readonly site: SiteId; readonly atMs: number }[]>();
  /** By tuple: who was ever told that it is theirs. */
  const claimants = new Map<string, Set<SiteId>>();
  const wiped: { readonly atMs: number; readonly held: readonly string[] }[] = [];
  /** By site that is down: what it had. */
  const down = new Map<SiteId, ReadonlySet<string>>();
  /** By tuple: since when more than f of those that had it have been down at one time. */
  const outnumbered = new Map<string, number>();
  const mistakes = new Mistakes();
  for (const event of told) {
    const { atMs } = event;
    mistakes.step(event);
    if (event.kind === "up") down.delete(event.site);
    else if (event.kind === "down") {
      down.set(event.site, new Set(event.held));
      for (const id of event.held) {
        const lacking = [...down.values()].filter((held) => held.has(id)).length;
        if (lacking > f && !outnumbered.has(id)) outnumbered.set(id, atMs);
      }
    }
    if (event.kind === "wiped") wiped.push(event);
    else if (event.kind === "acts") {
      claimants.set(event.id, (claimants.get(event.id) ?? new Set()).add(event.site));
    } else if (event.kind === "acted") acts.set(event.id, [...acts.get(event.id) ?? [], event]);
    else if (event.kind === "died unsettled") {
      deaths.set(event.id, [...deaths.get(event.id) ?? [], event]);
    } else if (event.kind === "fatal") say("fault", atMs, `${event.site}: ${event.text}`);
    else if (event.kind === "chose" && event.suspects.length > 0) {
      say("choice", atMs, `${event.site} chose ${event.suspects.join()}, whom it suspects`);
    }
  }
  for (const { id, atMs, copies, f } of acks) {
    // A disk that was lost while the receipt flew had it.
    const lost = wiped.filter((event) =>
      event.atMs <= atMs && event.atMs > atMs - FLIGHT_MS && event.held.includes(id)
    );
    if (copies + lost.length < f + 1) {
      say("copies", atMs, `${id} was acknowledged at ${copies} disks, f = ${f}`);
    } else if (copies < f + 1) excused("a copy that was lost while its receipt was on its way");
    if (!acts.has(id)) say("conservation", atMs, `${id} was acknowledged and never acted on`);
  }
  for (const [id, all] of acts) {
    const claimed = claimants.get(id) ?? new Set();
    for (const [i, two] of all.entries()) {
      const before = all.slice(0, i), one = before.at(-1);
      if (one === undefined) continue;
      const isMistake = mistakes.all.some(({ by, about, fromMs, untilMs }) =>
        (claimed.has(by) || claimed.has(about)) &&
        all.slice(0, i + 1).some(({ atMs }) => fromMs <= atMs && atMs <= untilMs + SETTLING_MS)
      );
      const hasDied = deaths.get(id)?.some(({ site, atMs }) =>
        atMs <= two.atMs && before.some((act) => act.site === site && act.atMs <= atMs)
      );
      if (hasDied === true) excused("acted on twice: who had acted died before the others knew");
      else if (isMistake) excused("acted on twice: a living site was taken for dead");
      else if ((outnumbered.get(id) ?? Infinity) <= two.atMs) {
        excused("acted on twice: more than f were down");
      } else {
        const text = `${id} was acted on at ${one.site}, ${one.atMs} ms, and again at ${two.site}`;
        say("duplicates", two.atMs, text);
      }
    }
  }
  return violations;
}
