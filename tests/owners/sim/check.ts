/**
 * What must hold of a history of owners groups. It reads what happened at sites and disks, and knows neither packets
 * nor versions.
 *
 * - conservation: what a producer was told is stored is acted on.
 * - copies: it is on f + 1 disks when the producer is told.
 * - duplicates: it is acted on once, unless somebody whose it was then was taken for dead and lived, or took another one
 *   for dead that lived, or did so while the act was under way, which let it go before it had removed it; or the one that
 *   had acted died before the others knew, or more than f that had it were down at one time, or it was sent again where
 *   its id cannot be known any more, or one that had taken it over died before who acted knew, and was back before that
 *   had removed it.
 * - choice: no suspect gets a new tuple.
 * - marks: who acts again on what it had marked finds its mark, but where its producer stored it anew there, as it did
 *   not own it any more: that is another one. Nor need it find what it marked while another one acted on the tuple, too:
 *   it may have taken that one's version since, with the mark there, as its process was not told yet that it is its own.
 *   The same of one that suspected it since, and took the tuple over before the mark had reached it.
 * - returns: a site that was away for longer than it had said acts on what its disk had when it has heard who else has that,
 *   as far as that disk says.
 * - patience: nobody acts meanwhile on what a site has that will be back, nor takes it for dead: neither who adopts it, nor
 *   who was down as it was adopted, unless that one is back from a stop of its own as it had said.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Excused } from "../../sim/excuses.ts";
import type { SiteEvent } from "./owner_site.ts";

export type Told =
  & (SiteEvent | {
    /** `ordered`: a producer with an id of its own asks for it. */
    readonly kind: "ordered" | "stored" | "died unsettled";
    readonly site: SiteId;
    readonly id: string;
  } | {
    /** Its disk has a later version of it than those that are `behind`. */
    readonly kind: "died ahead";
    readonly site: SiteId;
    readonly id: string;
    readonly behind: readonly SiteId[];
  })
  & { readonly atMs: number };

export interface History {
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

/** Who was suspected so shortly before it left may have been replaced already. */
const SHORTLY_MS = 3_000;
/** From the first disk to the acknowledgement. */
const FLIGHT_MS = 2_500;
/** So long after two sites hear each other again what one of them did meanwhile may be done again. */
const SETTLING_MS = 3_000;

/** A site took another one for dead that lived. One that is there for longer than it had said is taken so by any. */
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
    } else if (event.kind === "leaves" && event.untilMs < event.atMs) {
      // It was to be back by then, and has only just gone.
      this.all.push({ by: event.site, about: event.site, fromMs: event.untilMs, untilMs: event.atMs });
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

type Leave = Extract<Told, { readonly kind: "leaves" }>;

/** Planned stops: who is waited for, and who has to hear others as it is back. */
class Returns {
  readonly #away = new Map<SiteId, Leave>();
  /** By site that was late: of each tuple that it had, whom it has not heard. */
  readonly #unheard = new Map<SiteId, Map<string, Set<SiteId>>>();
  readonly #suspectedMs = new Map<SiteId, number>();
  /** Sites that are back as they had said. */
  readonly #inTime = new Set<SiteId>();
  readonly #say: (checker: string, atMs: number, message: string) => void;

  constructor(say: (checker: string, atMs: number, message: string) => void) {
    this.#say = say;
  }

  step(event: Told): void {
    const { atMs, site } = event;
    if (event.kind === "suspects") this.#suspectedMs.set(event.other, atMs);
    else if (event.kind === "dead") this.#buries(event.other, site, atMs);
    else if (event.kind === "leaves") this.#away.set(site, event);
    else if (event.kind === "up") this.#isBack(site, atMs);
    else if (event.kind === "wiped") this.#unheard.delete(site);
    else if (event.kind === "hears") {
      for (const sites of this.#unheard.get(site)?.values() ?? []) sites.delete(event.other);
    } else if (event.kind === "acts") {
      const unheard = [...this.#unheard.get(site)?.get(event.id) ?? []];
      if (unheard.length > 0) {
        this.#say(
          "returns",
          atMs,
          `${site} was late and acts on ${event.id} without a word of ${unheard.join()}`,
        );
      }
      const isLoaded = event.how === "loaded" && !this.#inTime.has(site);
      if (event.how === "adopted" || isLoaded) this.#adopts(event.id, site, atMs);
    }
  }

  #isBack(site: SiteId, atMs: number): void {
    const leave = this.#away.get(site);
    this.#away.delete(site);
    this.#inTime.delete(site);
    if (leave !== undefined && atMs <= leave.untilMs) this.#inTime.add(site);
    if (leave === undefined || atMs <= leave.untilMs) return;
    this.#unheard.set(site, new Map([...leave.own].map(([id, sites]) => [id, new Set(sites)])));
  }

  #buries(site: SiteId, by: SiteId, atMs: number): void {
    if (atMs >= (this.#away.get(site)?.untilMs ?? -Infinity)) return;
    this.#say("patience", atMs, `${by} takes ${site} for dead, which will be back`);
  }

  #adopts(id: string, by: SiteId, atMs: number): void {
    for (const { site, own, untilMs, atMs: leftMs } of this.#away.values()) {
      const isReplaced = (this.#suspectedMs.get(site) ?? -Infinity) > leftMs - SHORTLY_MS &&
        (this.#suspectedMs.get(site) ?? 0) < leftMs;
      if (site === by || !own.has(id) || atMs >= untilMs || isReplaced) continue;
      this.#say("patience", atMs, `${by} acts on ${id} of ${site}, which will be back`);
    }
  }
}

interface Mark {
  readonly site: SiteId;
  readonly tries: number;
  /** Who acted on the tuple, too, as it was made, and has not let go since. */
  readonly rivals: Set<SiteId>;
  /** Whether another one has suspected the site since, and may have taken the tuple over without the mark. */
  isDoubted: boolean;
}

/** What who acts finds of its own marks. */
class Marks {
  /** By tuple: who marked it last, and how often it was tried then. */
  readonly #tries = new Map<string, Mark>();
  /** By tuple: whose it is, as they were told and have not let go, each with those whose it was at the same time. */
  readonly #claims = new Map<string, Map<SiteId, Set<SiteId>>>();
  /** Whom each site suspects. */
  readonly #suspects = new Map<SiteId, Set<SiteId>>();
  readonly #say: (checker: string, atMs: number, message: string) => void;
  readonly #excused: Excused;

  constructor(say: (checker: string, atMs: number, message: string) => void, excused: Excused) {
    this.#say = say;
    this.#excused = excused;
  }

  step(event: Told): void {
    if (event.kind === "tried") {
      const { site, id, tries } = event, rivals = this.#claims.get(id)?.get(site);
      const isDoubted = [...this.#suspects.values()].some((suspects) => suspects.has(site));
      this.#tries.set(id, { site, tries, rivals: new Set(rivals), isDoubted });
    } else if (event.kind === "suspects") {
      const suspects = this.#suspects.get(event.site) ?? new Set();
      this.#suspects.set(event.site, suspects.add(event.other));
      for (const mark of this.#tries.values()) if (mark.site === event.other) mark.isDoubted = true;
    } else if (event.kind === "trusts") this.#suspects.get(event.site)?.delete(event.other);
    else if (event.kind === "down") {
      this.#suspects.delete(event.site);
      // What it made of a tuple is on its disk, and may be on others: a rival it remains.
      for (const claims of this.#claims.values()) claims.delete(event.site);
    } else if (event.kind === "wiped") {
      for (const [id, { site }] of this.#tries) if (site === event.site) this.#tries.delete(id);
    } else if (event.kind === "removed") this.#claims.get(event.id)?.delete(event.site);
    else if (event.kind === "lets go") {
      if (this.#tries.get(event.id)?.site === event.site) this.#tries.delete(event.id);
      this.#tries.get(event.id)?.rivals.delete(event.site);
      const claims = this.#claims.get(event.id);
      claims?.delete(event.site);
      for (const rivals of claims?.values() ?? []) rivals.delete(event.site);
    } else if (event.kind === "acts") {
      const last = this.#tries.get(event.id);
      this.#claim(event.id, event.site);
      // What a process stores itself nobody has marked: an earlier one has, and was replaced as an owner.
      const isAnother = event.how === "stored";
      if (last?.site === event.site && !isAnother && event.tries < last.tries) {
        if (last.rivals.size > 0) this.#excused("a mark, made while another one acted on the tuple, too");
        else if (last.isDoubted) {
          this.#excused("a mark that had not reached the one that took the tuple over");
        } else {
          this.#say(
            "marks",
            event.atMs,
            `${event.id} was tried ${last.tries} times at ${event.site}, which finds ${event.tries}`,
          );
        }
      }
      if (last?.site !== event.site || isAnother) this.#tries.delete(event.id);
    }
  }

  #claim(id: string, site: SiteId): void {
    const claims = this.#claims.get(id) ?? new Map<SiteId, Set<SiteId>>();
    this.#claims.set(id, claims);
    claims.delete(site);
    for (const rivals of claims.values()) rivals.add(site);
    claims.set(site, new Set(claims.keys()));
  }
}

/**
 * All that is wrong.
 *
 * @param excused hears each time that something is let pass.
 */
export function check({ told, acks }: History, excused: Excused = () => {}): Violation[] {
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
  const returns = new Returns(say), marks = new Marks(say, excused);
  for (const event of told) {
    const { atMs } = event;
    mistakes.step(event);
    returns.step(event);
    marks.step(event);
    if (event.kind === "up") down.delete(event.site);
    else if (event.kind === "down") {
      down.set(event.site, new Set(event.held.keys()));
      for (const [id, f] of event.held) {
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
      const isOvertaken = before.some((act) =>
        wasOvertaken(id, act, two.atMs, { told, mistakes: mistakes.all, claimed })
      );
      const hasDied = deaths.get(id)?.some(({ site, atMs }) =>
        atMs <= two.atMs && before.some((act) => act.site === site && act.atMs <= atMs)
      );
      const first = told.find((event) => event.kind === "ordered" && event.id === id);
      const isForgotten = first !== undefined && told.some((event) =>
        event.atMs >= first.atMs && event.atMs <= two.atMs &&
        ((event.kind === "wiped" && event.site === first.site) ||
          (event.kind === "suspects" && event.other === first.site))
      ) && told.some((event) =>
        event.kind === "stored" && event.id === id && event.atMs > first.atMs
      );
      if (hasDied === true) excused("acted on twice: who had acted died before the others knew");
      else if (isMistake || isOvertaken) excused("acted on twice: a living site was taken for dead");
      else if ((outnumbered.get(id) ?? Infinity) <= two.atMs) {
        excused("acted on twice: more than f were down");
      } else if (isForgotten) excused("acted on twice: sent again at a site that does not own it any more");
      else if (before.some((act) => wasBehind(id, act, two, told))) {
        excused("acted on twice: who had taken it over died before who acted knew");
      } else {
        const text = `${id} was acted on at ${one.site}, ${one.atMs} ms, and again at ${two.site}`;
        say("duplicates", two.atMs, text);
      }
    }
  }
  return violations;
}

/**
 * Whether another one, which took who had acted for dead meanwhile, had adopted the tuple, and that was let go before it was
 * removed, or removed where the other one lost its disk before it could hear of it: that one, or who had it from there, acts
 * on it, too, however much later.
 */
function wasOvertaken(
  id: string,
  act: { readonly site: SiteId; readonly atMs: number },
  untilMs: number,
  { told, mistakes, claimed }: {
    readonly told: readonly Told[];
    readonly mistakes: readonly Mistake[];
    readonly claimed: ReadonlySet<SiteId>;
  },
): boolean {
  const later = told.filter((event) => event.atMs >= act.atMs && event.atMs <= untilMs);
  const ended = later.find((event) =>
    (event.kind === "removed" || event.kind === "lets go") && event.site === act.site && event.id === id
  );
  if (ended === undefined) return false;
  return later.some((event) => {
    const hasAdopted = event.kind === "acts" && event.how === "adopted" && event.id === id &&
      mistakes.some(({ by, about, fromMs, untilMs }) =>
        by === event.site && claimed.has(about) && fromMs <= event.atMs && event.atMs <= untilMs
      );
    if (!hasAdopted) return false;
    if (ended.kind === "lets go") return event.atMs <= ended.atMs;
    return later.some(({ kind, site, atMs }) =>
      kind === "wiped" && site === event.site && atMs >= event.atMs
    );
  });
}

/**
 * Whether who had acted did so without what another one had made of the tuple, which had died before that was known and had
 * not been heard since, and was back before it was removed: its later version holds, and who has that acts again.
 */
function wasBehind(
  id: string,
  act: { readonly site: SiteId; readonly atMs: number },
  again: { readonly site: SiteId; readonly atMs: number },
  told: readonly Told[],
): boolean {
  const claimMs = ({ site, atMs }: typeof act) =>
    told.findLast((event) =>
      event.kind === "acts" && event.id === id && event.site === site && event.atMs <= atMs
    )?.atMs ?? -Infinity;
  const firstMs = claimMs(act), secondMs = claimMs(again);
  const isRemoved = told.some((event) =>
    event.kind === "removed" && event.id === id && event.site === act.site && event.atMs >= act.atMs &&
    event.atMs < secondMs
  );
  if (isRemoved) return false;
  return told.some((death) => {
    const isUnknown = death.kind === "died ahead" && death.id === id && death.behind.includes(act.site) &&
      death.atMs <= firstMs;
    if (!isUnknown) return false;
    const isHeard = told.some((event) =>
      event.kind === "trusts" && event.site === act.site && event.other === death.site &&
      death.atMs < event.atMs && event.atMs < firstMs
    );
    const isBack = told.some((event) =>
      event.kind === "up" && event.site === death.site && firstMs < event.atMs && event.atMs < secondMs
    );
    return !isHeard && isBack;
  });
}
