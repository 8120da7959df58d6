/**
 * How a child's incarnation gets its number, and what the others are told of it.
 *
 * N1  The end of an incarnation is a row of this journal before the new one's first push is (PROTOCOL I8), and on
 *     disk before the new one hears its number.
 */
import type { SiteRecord } from "./api.ts";
import { type Child, CHILD_RECORD } from "./child.ts";
import type { Core } from "./core.ts";
import type { Key } from "./key.ts";
import type { Hello } from "./message.ts";
import type { ClockValue, ReplicaNumber } from "./row.ts";
import { encodeJson, endedKey, replicaKey, siteKey } from "./topology.ts";

interface Host {
  /** A number from the root. */
  number(): Promise<ReplicaNumber>;
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
    const number = await this.#host.number();
    await core.rows.lock.run(async () => {
      // A later hello has its own number coming: it must not be ended by this one's.
      if (connection !== child.connection) return;
      const isNew = child.replica === 0;
      const ended = new Map<ReplicaNumber, ClockValue>();
      if (child.replica !== 0) ended.set(child.replica, child.stable);
      // Nothing is known here of how far an incarnation came that another incarnation of this site had fed.
      if (hello.replica !== 0 && !ended.has(hello.replica)) ended.set(hello.replica, 0);
      for (const [old, stable] of ended) {
        if (core.topology.ended(old) === undefined) await this.#write(endedKey(old), { stable });
      }
      child.replica = number;
      // A blank one has nothing left to push.
      child.hasPushed = hello.replica === 0;
      child.enrolledBy = core.replica;
      child.enrolledFrom = hello.replica;
      child.pushed = child.acked = 0;
      // One that kept its rows has older ones still to push. The clock of a blank one starts above this one's, but
      // one that was here before may have lost rows of its children's, which they push again.
      child.stable = hello.replica !== 0 ? 0 : isNew ? core.clock.last : child.stable;
      await this.#write(replicaKey(number), {
        site: child.id,
        path: [...core.path, core.config.site, child.id],
        parent: core.replica,
      });
      await this.#write(siteKey(child.id), this.#record(child, hello));
      core.rows.record(CHILD_RECORD + child.id, child.encode());
    });
    core.count("enrolled");
    core.wake();
    await this.#host.durable();
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
