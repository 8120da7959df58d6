/**
 * Enrolment of children: how an incarnation of a child gets its number, and what the others are told of it.
 *
 * N1  The end of an incarnation is a row of this journal before the new one's first push is (PROTOCOL I8), and on disk
 *     before the new one hears its number.
 * N2  The root writes down whom it gave a number before anybody hears it, and a number travels behind the feed: a site
 *     that has got one knows of all that were given before. So a parent whose disk was lost learns which children it
 *     had, and which incarnations are to be ended, although their disks may be lost, too.
 * N3  An incarnation that this site does not remember ends at what is left of the one that enrolled it (topology.ts
 *     `ended`): nothing else is known of how far it came.
 */
import type { SiteRecord } from "../api/api.ts";
import { type Child, CHILD_RECORD } from "../core/child.ts";
import type { Core } from "../core/core.ts";
import type { Key } from "../model/key.ts";
import type { ChildHello, Claim } from "../wire/message.ts";
import type { ClockValue, ReplicaNumber } from "../model/row.ts";
import { decodeJson, encodeJson, type Ended, endedKey, siteKey } from "../members/topology.ts";

interface Host {
  /** Reports whether rows that only a child's old parent had are given up. */
  isGivenUp(hello: ChildHello): boolean;
  /** Gets a number from the root. */
  number(claim: Claim): Promise<ReplicaNumber>;
  /** Resolves when everything applied so far is on disk. */
  durable(): Promise<void>;
}

/** Enrols the children of one site. */
export class Enrolment {
  readonly #core: Core;
  readonly #host: Host;

  constructor(core: Core, host: Host) {
    this.#core = core;
    this.#host = host;
  }

  /** Gives a new incarnation of a child its number, and ends the old one (N1). */
  async enroll(child: Child, hello: ChildHello, connection: number): Promise<void> {
    const core = this.#core;
    const claim: Claim = {
      site: child.id,
      path: [...core.path, core.config.site, child.id],
      parent: core.replica,
      from: hello.replica,
    };
    // A site that went to another parent while the number was on its way may live there by then.
    const living = core.topology.living(child.id);
    const number = await this.#host.number(claim);
    await core.rows.lock.run(async () => {
      // A later hello has its own number coming: it must not be ended by the number of this one.
      if (connection !== child.connection || claim.parent !== core.replica) return;
      if (core.topology.incarnation(number) === undefined) {
        throw new Error(`the number ${number} has come before the row that says whose it is (N2)`);
      }
      const isNew = child.replica === 0;
      for (const old of this.#ending(child, hello, number)) {
        const isOthers = hello.replica === 0 && !this.#isOurs(old) && !living.includes(old);
        if (!isOthers) await this.#write(endedKey(old), this.#endOf(old, number, { child, hello }));
      }
      child.replica = number;
      child.hasPushed = false;
      child.enrolledBy = core.replica;
      child.enrolledFrom = hello.replica;
      child.enrolledAsKnown = hello.moved?.from === "";
      child.pushed = child.acked = 0;
      // A child that kept its rows has older ones still to push. The clock of a blank one starts above this site's, but
      // a child that was here before may have lost rows of its own children, which they push again.
      child.stable = hello.replica !== 0 ? 0 : isNew ? core.clock.last : child.stable;
      await this.#write(siteKey(child.id), this.#record(child, hello));
      core.rows.record(CHILD_RECORD + child.id, child.encode());
    });
    core.count("enrolled");
    core.wake();
    await this.#host.durable();
  }

  /** Lists the incarnations of a child that the one with this number ends; a later number is another hello's. */
  #ending(child: Child, hello: ChildHello, number: ReplicaNumber): ReplicaNumber[] {
    const { topology } = this.#core;
    // An incarnation that some site took for lost, and that comes all the same, goes on.
    const isMistaken = (old: ReplicaNumber) =>
      old === hello.replica && topology.succession.nextOf(old) === undefined && !topology.endedByRemoval(old);
    return [...new Set([child.replica, hello.replica, ...topology.living(child.id)])]
      .filter((old) => old !== 0 && old < number)
      .filter((old) => topology.recordedEnd(old) === undefined || isMistaken(old));
  }

  #isOurs(number: ReplicaNumber): boolean {
    return this.#core.topology.incarnation(number)?.path.at(-2) === this.#core.config.site;
  }

  /**
   * Makes the end of an old incarnation. A child that kept its disk goes on with all that the numbers had which this
   * disk was given before.
   */
  #endOf(
    old: ReplicaNumber,
    next: ReplicaNumber,
    { child, hello }: { child: Child; hello: ChildHello },
  ): Ended {
    const core = this.#core, { topology } = core;
    const isRemembered = old === child.replica || topology.incarnation(old)?.from === child.replica;
    // No more is known here of an incarnation that stood elsewhere than that it counted in the root's stable clock.
    const known = this.#known;
    const stable = isRemembered && child.replica !== 0 // N3
      ? child.stable
      : Math.min(topology.recordedEnd(old) ?? Infinity, topology.ended(old) ?? Infinity, known);
    if (!topology.isOneDisk(old, hello.replica)) return { stable };
    return this.#isLost(hello) && old === hello.replica ? { stable, next, gap: known } : { stable, next };
  }

  /**
   * Writes that something is lost, where a later hello of the disk whose incarnation has ended for this number says so,
   * and the one before did not (moving.ts M1).
   */
  async noteLoss(child: Child, hello: ChildHello): Promise<void> {
    const core = this.#core;
    if (!child.enrolledAsKnown || !this.#isLost(hello)) return;
    await core.rows.lock.run(async () => {
      const key = endedKey(hello.replica);
      const [row] = await core.rows.lookup([key]);
      const ended = decodeJson(row?.value ?? null) as Ended | undefined;
      if (ended === undefined || ended.next !== child.replica || ended.gap !== undefined) return;
      core.rows.apply(row, core.own(key, encodeJson({ ...ended, gap: this.#known })));
    });
    core.wake();
  }

  /** Reports whether rows that only a child's old parent had are gone. */
  #isLost(hello: ChildHello): boolean {
    return this.#core.topology.succession.heir(hello.parentReplica) === null || this.#host.isGivenUp(hello);
  }

  /** Clock up to which the root is known to have all entries of all sites. */
  get #known(): ClockValue {
    const { isRoot, watermark, topology, stable } = this.#core;
    return isRoot ? watermark : topology.succession.bound(stable[0] ?? 0);
  }

  /**
   * Corrects the record of a child, under the lock: a parent that the child had asked before may have written later,
   * and of a number that was never used.
   */
  async correct(child: Child): Promise<void> {
    const known = this.#core.topology.site(child.id);
    if (known === undefined || known.number === child.replica) return;
    const record = {
      ...known,
      number: child.replica,
      parent: this.#core.config.site,
      depth: this.#core.depth + 1,
    };
    await this.#write(siteKey(child.id), record);
  }

  /** Writes where a known child is reached now, if that has changed. */
  async refresh(child: Child, hello: ChildHello): Promise<void> {
    const known = this.#core.topology.site(child.id);
    if (known?.url === hello.url && known.linkAddress === hello.linkAddress && known.tier === hello.tier) {
      return;
    }
    await this.#core.rows.lock.run(() => this.#write(siteKey(child.id), this.#record(child, hello)));
    this.#core.wake();
  }

  #record(child: Child, hello: ChildHello): SiteRecord {
    return {
      id: child.id,
      number: child.replica,
      parent: this.#core.config.site,
      depth: this.#core.depth + 1,
      tier: hello.tier,
      url: hello.url,
      linkAddress: hello.linkAddress,
    };
  }

  async #write(key: Key, value: unknown): Promise<void> {
    const [old] = await this.#core.rows.lookup([key]);
    this.#core.rows.apply(old, this.#core.own(key, encodeJson(value)));
  }
}
