/**
 * What must hold of a history of owners groups. It reads what happened at sites and disks, and knows neither packets
 * nor versions.
 *
 * - conservation: what a producer was told is stored is acted on.
 * - copies: it is on f + 1 disks when the producer is told.
 * - duplicates: it is acted on once, unless between a living site was taken for dead, or the one that acted died before
 *   the others knew.
 * - choice: no suspect gets a new tuple.
 */
import type { SiteId } from "../../../store/ports.ts";
import type { SiteEvent } from "./owner_site.ts";

export type Told =
  & (SiteEvent | { readonly kind: "stored" | "died unsettled"; readonly site: SiteId; readonly id: string })
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

/** From the first disk to the acknowledgement. */
const FLIGHT_MS = 2_500;

/** All that is wrong, and how many acts were duplicates with an excuse. */
export function check({ told, acks }: History): { violations: Violation[]; duplicates: number } {
  const violations: Violation[] = [];
  const say = (checker: string, atMs: number, message: string) => violations.push({ checker, message, atMs });
  const acts = new Map<string, { readonly site: SiteId; readonly atMs: number }[]>();
  const unsettled = new Map<string, number[]>();
  const mistakes: number[] = [];
  const up = new Set<SiteId>();
  for (const event of told) {
    const { atMs } = event;
    if (event.kind === "up") up.add(event.site);
    else if (event.kind === "down") up.delete(event.site);
    else if (event.kind === "suspects" && up.has(event.other)) mistakes.push(atMs);
    else if (event.kind === "acted") acts.set(event.id, [...acts.get(event.id) ?? [], event]);
    else if (event.kind === "died unsettled") {
      unsettled.set(event.id, [...unsettled.get(event.id) ?? [], atMs]);
    } else if (event.kind === "fatal") say("fault", atMs, `${event.site}: ${event.text}`);
    else if (event.kind === "chose" && event.suspects.length > 0) {
      say("choice", atMs, `${event.site} chose ${event.suspects.join()}, whom it suspects`);
    }
  }
  for (const { id, atMs, copies, f } of acks) {
    // A disk that was lost while the receipt flew had it.
    const lost = told.filter((event) =>
      event.kind === "wiped" && event.atMs <= atMs && event.atMs > atMs - FLIGHT_MS
    );
    if (copies + lost.length < f + 1) {
      say("copies", atMs, `${id} was acknowledged at ${copies} disks, f = ${f}`);
    }
    if (!acts.has(id)) say("conservation", atMs, `${id} was acknowledged and never acted on`);
  }
  let duplicates = 0;
  for (const [id, all] of acts) {
    for (let i = 1; i < all.length; i++) {
      const [one, two] = [all[i - 1], all[i]];
      if (one === undefined || two === undefined) continue;
      duplicates++;
      const isMistake = mistakes.some((atMs) => atMs <= two.atMs);
      const hasDied = unsettled.get(id)?.some((atMs) => atMs <= two.atMs) === true;
      if (isMistake || hasDied) continue;
      say(
        "duplicates",
        two.atMs,
        `${id} was acted on at ${one.site}, ${one.atMs} ms, and again at ${two.site}`,
      );
    }
  }
  return { violations, duplicates };
}
