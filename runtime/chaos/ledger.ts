/**
 * Ledger of the faults in a dev cluster, from which each site's own faults follow: pure bookkeeping, kept by the dev
 * process for as long as it lives. A site is told all its faults at once, so that being told twice, late, or at its
 * next start is the same.
 *
 * G1  A link is a pair of sites: both ends are told, and each alone stops it (runtime/link/emulation.ts).
 */
import { z } from "zod";
import { type ChaosState, DISK_STATES, type DiskState } from "./actions.ts";

/** Properties of a link (runtime/link/emulation.ts). */
export interface ChangedLink {
  readonly rttMs: number;
  readonly mbps: number;
  readonly jitterMs: number;
  readonly loss: number;
}

const shape = z.strictObject({ rttMs: z.number(), mbps: z.number(), jitterMs: z.number(), loss: z.number() });

/** Schema of one site's faults, in the file that it starts with and in the calls that tell it while it runs. */
export const siteFaultsSchema = z.strictObject({
  /** Sites to and from which no byte passes. */
  cut: z.array(z.string()),
  /** Links that differ from the site file, by the other site's id. */
  shapes: z.record(z.string(), shape),
  skewMs: z.number(),
  disk: z.enum(DISK_STATES),
});
/** Faults of one site. */
export type SiteFaults = z.infer<typeof siteFaultsSchema>;

/** Faults of a site of which nothing is broken. */
export const NO_FAULTS: SiteFaults = { cut: [], shapes: {}, skewMs: 0, disk: "ok" };

type Pair = readonly [string, string];

/** Faults in force. */
export class Ledger {
  readonly #cuts = new Map<string, Pair>();
  readonly #shapes = new Map<string, { readonly pair: Pair; readonly shape: ChangedLink }>();
  readonly #skews = new Map<string, number>();
  readonly #disks = new Map<string, DiskState>();

  /** Cuts all links between two groups (G1). */
  cut(groupA: readonly string[], groupB: readonly string[]): void {
    for (const a of groupA) {
      for (const b of groupB) this.#cuts.set(nameOf([a, b]), inOrder([a, b]));
    }
  }

  /** Ends cuts and delays: of one link, or of all. Returns how many links there were. */
  heal(link?: Pair): number {
    const names = link === undefined ? [...this.#cuts.keys(), ...this.#shapes.keys()] : [nameOf(link)];
    const healed = new Set(names.filter((name) => this.#cuts.has(name) || this.#shapes.has(name)));
    for (const name of healed) {
      this.#cuts.delete(name);
      this.#shapes.delete(name);
    }
    return healed.size;
  }

  /** Changes the properties of a link. */
  shape(pair: Pair, shape: ChangedLink): void {
    this.#shapes.set(nameOf(pair), { pair: inOrder(pair), shape });
  }

  /** Returns a link's changed properties; null where it is as the topology says. */
  shapeOf(pair: Pair): ChangedLink | null {
    return this.#shapes.get(nameOf(pair))?.shape ?? null;
  }

  /** Puts a site's clock ahead, or back; 0 ends the skew. */
  skew(site: string, ms: number): void {
    if (ms === 0) this.#skews.delete(site);
    else this.#skews.set(site, ms);
  }

  /** Breaks a site's disk, or repairs it. */
  disk(site: string, state: DiskState): void {
    if (state === "ok") this.#disks.delete(site);
    else this.#disks.set(site, state);
  }

  /** Returns the faults of a site. */
  of(site: string): SiteFaults {
    const cut = [...this.#cuts.values()].flatMap(([a, b]) => a === site ? [b] : b === site ? [a] : []);
    const shapes = [...this.#shapes.values()].flatMap(({ pair: [a, b], shape }) =>
      a === site ? [[b, shape] as const] : b === site ? [[a, shape] as const] : []
    );
    return {
      cut,
      shapes: Object.fromEntries(shapes),
      skewMs: this.#skews.get(site) ?? 0,
      disk: this.#disks.get(site) ?? "ok",
    };
  }

  /** Returns everything in force that the ledger knows of. */
  state(): Omit<ChaosState, "down" | "paused"> {
    return {
      cuts: [...this.#cuts.values()].map(([a, b]) => ({ a, b })),
      delays: [...this.#shapes.values()].map(({ pair: [a, b], shape }) => ({ a, b, ...shape })),
      skews: [...this.#skews].map(([site, ms]) => ({ site, ms })),
      disks: [...this.#disks].flatMap(([site, state]) => state === "ok" ? [] : [{ site, state }]),
    };
  }
}

const inOrder = ([a, b]: Pair): Pair => a < b ? [a, b] : [b, a];
const nameOf = (pair: Pair): string => inOrder(pair).join(" ");
