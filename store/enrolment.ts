/**
 * How a child's incarnation gets its number, and what the others are told of it.
 *
 * N1  The end of an incarnation is a row of this journal before the new one's first push is (PROTOCOL I8), and on
 *     disk before the new one hears its number.
 * N2  The root writes down whom it gave a number before anybody hears it, and a number travels behind the feed:
 *     whoever has got one knows of all that were given before. So a parent whose disk was lost learns which
 *     children it had, and which incarnations are to be ended, although their disks may be lost, too.
 * N3  An incarnation that this site does not remember ends at what is left of the one that enrolled it
 *     (topology.ts `ended`): nothing else is known of how far it came.
 */
import type { SiteRecord } from "./api.ts";
import { type Child, CHILD_RECORD } from "./child.ts";
import type { Core } from "./core.ts";
import type { Key } from "./key.ts";
import type { Claim, Hello } from "./message.ts";
import type { ClockValue, ReplicaNumber } from "./row.ts";
import { encodeJson, endedKey, replicaKey, siteKey } from "./topology.ts";

interface Host {
  /** A number from the root. */
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
  async enroll(child: Child, hello: Hello, connection: number): Promise<void> {
    const core = this.#core;
    const claim: Claim = {
      site: child.id,
      path: [...core.path, core.config.site, child.id],
      parent: core.replica,
      from: hello.replica,
    };
    const number = await this.#host.number(claim);
    await core.rows.lock.run(async () => {
      // A later hello has its own number coming: it must not be ended by this one's.
      if (connection !== child.connection) return;
      const isNew = child.replica === 0;
      for (const old of this.#living(child, hello, number)) {
        await this.#write(endedKey(old), { stable: this.#endOf(old, child) });
      }
      child.replica = number;
      child.hasPushed = false;
      child.enrolledBy = core.replica;
      child.enrolledFrom = hello.replica;
      child.pushed = child.acked = 0;
      // One that kept its rows has older ones still to push. The clock of a blank one starts above this one's, but
      // one that was here before may have lost rows of its children's, which they push again.
      child.stable = hello.replica !== 0 ? 0 : isNew ? core.clock.last : child.stable;
      // The root has written it when it gave the number: where that has come here, once is enough for all sites.
      if (core.topology.incarnation(number) === undefined) await this.#write(replicaKey(number), claim);
      await this.#write(siteKey(child.id), this.#record(child, hello));
      core.rows.record(CHILD_RECORD + child.id, child.encode());
    });
    core.count("enrolled");
    core.wake();
    await this.#host.durable();
  }

  /** The incarnations of a child that the one with this number ends; a later number is another hello's. */
  #living(child: Child, hello: Hello, number: ReplicaNumber): ReplicaNumber[] {
    const { topology } = this.#core;
    return [...new Set([child.replica, hello.replica, ...topology.living(child.id)])]
      .filter((old) => old !== 0 && old < number && topology.recordedEnd(old) === undefined);
  }

  #endOf(old: ReplicaNumber, child: Child): ClockValue {
    const { topology } = this.#core;
    const isRemembered = old === child.replica || topology.incarnation(old)?.from === child.replica;
    return isRemembered && child.replica !== 0 ? child.stable : topology.ended(old) ?? 0;
  }

  /** Writes where a known child is reached now, if that has changed. */
  async refresh(child: Child, hello: Hello): Promise<void> {
    const known = this.#core.topology.site(child.id);
    if (known?.url === hello.url && known.linkAddress === hello.linkAddress && known.tier === hello.tier) {
      return;
    }
    await this.#core.rows.lock.run(() => this.#write(siteKey(child.id), this.#record(child, hello)));
    this.#core.wake();
  }

  #record(child: Child, hello: Hello): SiteRecord {
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
