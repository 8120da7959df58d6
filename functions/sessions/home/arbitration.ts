/**
 * Arbiter at its site, with what it needs to know whether it may go by its disk: the sites that were heard
 * (certainty.ts), and what becomes of names where the disk went back (rebuild.ts).
 *
 * Life: opened with the site's homes → surveys the tree → sure, or behind: all names are settled → sure.
 *
 * AB1  A copy of the root is one of all its disks. While it is not known whether this site's own disk of logs went back
 *      with the arbiter's, the disk of logs takes nothing and gives nothing (`known`). Once it is known that it did, it
 *      is another disk (K8): it has forgotten what was promised on it since the copy was made, and earlier homes are
 *      refused there.
 * AB2  What the store of this site is known to have lost the arbiter is taken to have lost (`storeWentBack`). The store
 *      takes no site as a child that has had more of it: such a site may never say how far it has heard of the arbiter.
 * AB3  This site says of the arbiter's steps those that the arbiter's disk has (`position`). The disk of logs, which is
 *      written beside it, may have one more: a site that was told of that one, and said so after a power cut, would
 *      prove that the arbiter's disk went back, which it did not.
 * AB4  Nor does the arbiter's disk ever have two steps that this site's disk of logs has not heard of: the disk of logs
 *      would be taken for an older copy, and nothing of it would be given out any more. So each process has it hear of
 *      the last step that it has found before it makes its own first one: the process before may have died between the
 *      two disks.
 */
import type { Clock, Random, SiteId, Storage } from "../../../store/model/ports.ts";
import { Arbiter } from "./arbiter.ts";
import type { ArbiterAsk, Reply, SiteAsk } from "../log/asks.ts";
import { Certainty } from "./certainty.ts";
import type { Asking } from "../log/exchange.ts";
import type { ArbiterStatus, HomesPorts } from "../log/ports.ts";
import { Rebuild } from "./rebuild.ts";
import { JUMP_MIN, type Recollection } from "../log/recollection.ts";
import { SureArbiter } from "./sure_arbiter.ts";

export interface ArbitrationPorts {
  readonly site: SiteId;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly nowMs: () => number;
  readonly random: Random;
  readonly fellows: Pick<HomesPorts["fellows"], "sites" | "watch" | "onChange">;
  /** Number of this site's own disk of logs; `witness`: the highest position that it had as it was opened. */
  readonly disk: number;
  readonly witness: number;
  readonly recollection: () => Pick<Recollection, "heard">;
  /** Makes this site's own disk of logs, which went back, another one; resolves when it is (AB1). */
  readonly wentBack: () => Promise<void>;
  ask(to: SiteId, ask: SiteAsk): Asking;
  readonly gone: (site: SiteId) => "gone" | "here" | "unsure";
  readonly perAppMax: number;
  readonly endedMs?: number | undefined;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
  readonly fatal: (error: Error) => void;
}

/** Bytes of the number from which on epochs are drawn where it is not known which were granted: 32 bits. */
const LEAP_BYTES = 4;
/** Interval at which names are settled further, where sites were missed. */
const REBUILD_EVERY_MS = 5_000;
/** Steps that the disk of logs may be ahead of the arbiter's: they are written beside each other. */
const STEP = 1;

/** Arbiter at its site (see the file's header). */
export class Arbitration {
  readonly #ports: ArbitrationPorts;
  readonly arbiter: Arbiter;
  readonly #certainty: Certainty;
  readonly #rebuild: Rebuild;
  readonly #sure: SureArbiter;
  #ranMs = -Infinity;
  readonly #known = Promise.withResolvers<void>();
  #isKnown = false;
  /** Highest position that the own disk of logs had at the start; Infinity: it is another disk since (AB1). */
  #witness: number;
  #storeWentBack = false;

  private constructor(
    ports: ArbitrationPorts,
    parts: { arbiter: Arbiter; certainty: Certainty; leap: number },
  ) {
    this.#ports = ports;
    this.#witness = ports.witness;
    const { arbiter, certainty, leap } = parts;
    this.arbiter = arbiter;
    this.#certainty = certainty;
    const { site, fellows, clock, nowMs, note, ask, fatal } = ports;
    const after = (ms: number, callback: () => void) => clock.after(ms, callback);
    this.#rebuild = new Rebuild({
      site,
      arbiter,
      sites: () => fellows.sites(),
      ask,
      after,
      leap,
      note,
      fatal,
    });
    this.#sure = new SureArbiter(arbiter, {
      ...{ nowMs, after, certainty },
      onChange: (changed) => fellows.onChange(changed),
      settle: (name) => this.#rebuild.settle(name),
    });
  }

  static async open(ports: ArbitrationPorts): Promise<Arbitration> {
    const { site, disk, witness, fellows, ask, note, random, nowMs, gone } = ports;
    const drawn = () => 1 + random.bytes(LEAP_BYTES).reduce((number, byte) => number * 256 + byte, 0);
    const leap = drawn(), jump = JUMP_MIN + drawn();
    const held: { arbiter: Arbiter | null; all: Arbitration | null } = { arbiter: null, all: null };
    const certainty = new Certainty({
      ...{ site, disk, ask, nowMs, gone, note },
      sites: () => fellows.sites(),
      watch: (one) => fellows.watch(one),
      heardOf: (one, position) => held.all?.heard(one, position),
      isBehind: () => held.arbiter?.isBehind ?? false,
    });
    const arbiter = held.arbiter = await Arbiter.open({
      ...{ ...ports, heard: certainty, leap, jump, siteWitness: witness },
      witness: (position) => ports.recollection().heard(position),
      behind: (by) => note("arbiter_behind", by),
    });
    return held.all = new Arbitration(ports, { arbiter, certainty, leap });
  }

  /** Begins the survey; to be called when the site's homes can be asked. */
  begin(): void {
    const { site, witness } = this.#ports;
    if (witness > this.arbiter.position + STEP) this.arbiter.heard(site, witness);
    if (witness < this.arbiter.least) this.#ownDiskWentBack();
    this.#certainty.onChange(() => this.#look());
    this.#certainty.survey();
    this.#look();
  }

  /** Resolves when it is known whether the own disk of logs went back; null where it is (AB1). */
  get known(): Promise<void> | null {
    return this.#isKnown ? null : this.#known.promise;
  }

  #look(): void {
    if (this.#certainty.isDone && this.#witness !== Infinity) this.#know();
  }

  #know(): void {
    this.#isKnown = true;
    this.#known.resolve();
  }

  #ownDiskWentBack(): void {
    this.#witness = Infinity;
    void this.#ports.wentBack().then(() => this.#know(), () => {}); // the disk has failed: the site stops
  }

  get position(): number {
    return this.arbiter.position;
  }

  handle(from: SiteId, ask: ArbiterAsk): Promise<Reply> {
    return this.#sure.handle(from, ask);
  }

  heard(from: SiteId, position: number): void {
    const { arbiter } = this, isForeign = arbiter.isForeign(position);
    if (from !== this.#ports.site && isForeign && position > this.#witness) this.#ownDiskWentBack();
    this.arbiter.heard(from, position);
  }

  /**
   * Notes that the store of this site went back (AB2). @param site that has had more of the store than its disk has.
   * One such site is enough.
   */
  storeWentBack(site: SiteId): void {
    if (this.#storeWentBack) return;
    this.#storeWentBack = true;
    if (this.#witness !== Infinity) this.#ownDiskWentBack();
    this.arbiter.wentBack(site);
  }

  tick(): void {
    this.#certainty.survey();
    const nowMs = this.#ports.nowMs();
    if (!this.arbiter.isBehind || nowMs - this.#ranMs < REBUILD_EVERY_MS) return;
    this.#ranMs = nowMs;
    this.#rebuild.run();
  }

  get status(): ArbiterStatus {
    if (this.arbiter.isBehind) return { state: "behind", missed: this.#rebuild.missed };
    const { isSure, silent } = this.#certainty;
    return { state: isSure ? "sure" : "unsure", missed: silent };
  }

  async close(): Promise<void> {
    this.#rebuild.close();
    this.#certainty.close();
    this.#sure.close();
    await this.arbiter.close();
  }
}
