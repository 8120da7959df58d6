/**
 * Eager replication and strong consistency as in the paper's section VI.C.3 (one Cassandra ring over all six
 * sites, each pair connected), for comparison only, over links and disks in virtual time.
 *
 *   all      a copy at each site; a write waits for all of them, a read is local
 *   quorum   a copy at each site; writes and reads wait for 4 of 6; a read takes the row from the nearest and
 *            digests from the others
 *   single   one copy, at a site drawn by hash; one site is asked
 *   strong   linearizable: a write is a light-weight transaction (prepare, read, propose at a quorum, commit at
 *            all), a read settles what is under way with a quorum (prepare) and then reads from a quorum
 *
 * Nothing fails here, so what Cassandra has for that (hints, repair) is left out, and so are contended ballots.
 */
import { compareVersions, type Row } from "../../../store/model/row.ts";
import type { Key } from "../../../store/model/key.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { pointRange } from "../../../store/model/range.ts";
import { ACK_BYTES, BALLOT_MESSAGE_BYTES, DIGEST_ANSWER_BYTES, queryBytes, rowsBytes } from "./messages.ts";
import type { Datum } from "./queries.ts";
import { COMMIT_MS, roundTripMs, SITES } from "./topology.ts";
import type { Around } from "./tree_site.ts";

export type Deployment = "all" | "quorum" | "single" | "strong";
export const DEPLOYMENTS: readonly Deployment[] = ["all", "quorum", "single", "strong"];

const QUORUM = Math.floor(SITES.length / 2) + 1;

/** Which of the sites holds the only copy (FNV-1a over the key). */
export function ownerOf(key: Key): SiteId {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return SITES[(hash >>> 0) % SITES.length] ?? "";
}

/** Resolves when so many of the tasks have; the others go on. */
function first(count: number, tasks: readonly Promise<void>[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = count;
    const done = () => --left === 0 && resolve();
    for (const task of tasks) task.then(done, reject);
  });
}

/** Six sites, one ring. */
export class Ring {
  readonly #around: Around;
  readonly #deployment: Deployment;
  readonly #copies = new Map<SiteId, Map<Key, Row>>(SITES.map((site) => [site, new Map()]));
  #clock = 2 ** 47;

  constructor(deployment: Deployment, around: Around) {
    this.#deployment = deployment;
    this.#around = around;
  }

  /** What a site holds of a key. */
  copyAt(site: SiteId, key: Key): Row | undefined {
    return this.#copies.get(site)?.get(key);
  }

  /** A client at `site` writes a row. */
  async write(site: SiteId, datum: Datum): Promise<void> {
    const row: Row = { ...datum, clock: ++this.#clock, replica: 1, known: 0, expiresAtMs: 0, position: 0 };
    switch (this.#deployment) {
      case "all":
        return await first(SITES.length, this.#store(site, SITES, row));
      case "quorum":
        return await first(QUORUM, this.#store(site, SITES, row));
      case "single":
        return await first(1, this.#store(site, [ownerOf(row.key)], row));
      case "strong":
        await this.#quorumOf(site, BALLOT_MESSAGE_BYTES, BALLOT_MESSAGE_BYTES, COMMIT_MS);
        await this.#readQuorum(site, row.key);
        await this.#quorumOf(site, BALLOT_MESSAGE_BYTES + rowsBytes([row]), BALLOT_MESSAGE_BYTES, COMMIT_MS);
        return await first(SITES.length, this.#store(site, SITES, row));
    }
  }

  /** A client at `site` reads a row. */
  async read(site: SiteId, key: Key): Promise<Row | undefined> {
    switch (this.#deployment) {
      case "all":
        return this.copyAt(site, key);
      case "quorum":
        return await this.#readQuorum(site, key);
      case "single": {
        const owner = ownerOf(key), row = this.copyAt(owner, key);
        await this.#exchange(
          site,
          owner,
          queryBytes(pointRange(key), 1),
          rowsBytes(row === undefined ? [] : [row]),
        );
        return row;
      }
      case "strong":
        await this.#quorumOf(site, BALLOT_MESSAGE_BYTES, BALLOT_MESSAGE_BYTES, COMMIT_MS);
        return await this.#readQuorum(site, key);
    }
  }

  /** There and back; nothing where both are one. */
  async #exchange(
    site: SiteId,
    to: SiteId,
    there: number,
    back: number,
    between?: () => Promise<void>,
  ): Promise<void> {
    const { links } = this.#around;
    if (to !== site) await links.deliver(site, to, there);
    await between?.();
    if (to !== site) await links.deliver(to, site, back);
  }

  #store(site: SiteId, at: readonly SiteId[], row: Row): Promise<void>[] {
    return at.map((to) =>
      this.#exchange(site, to, rowsBytes([row]), ACK_BYTES, async () => {
        await this.#around.world.sleep(COMMIT_MS);
        const copies = this.#copies.get(to), old = copies?.get(row.key);
        if (old === undefined || compareVersions(row, old) > 0) copies?.set(row.key, row);
      })
    );
  }

  /** One round of Paxos: all are asked, a quorum is waited for. */
  async #quorumOf(site: SiteId, there: number, back: number, takesMs: number): Promise<void> {
    const { world } = this.#around;
    await first(QUORUM, SITES.map((to) => this.#exchange(site, to, there, back, () => world.sleep(takesMs))));
  }

  /** The row from the nearest (here), digests from the others of the nearest quorum; the row where one differs. */
  async #readQuorum(site: SiteId, key: Key): Promise<Row | undefined> {
    const nearest = SITES.toSorted((a, b) => roundTripMs(site, a) - roundTripMs(site, b)).slice(0, QUORUM);
    const asked = queryBytes(pointRange(key), 1);
    let newest = this.copyAt(site, key);
    await Promise.all(
      nearest.slice(1).map(async (other) => {
        await this.#exchange(site, other, asked, DIGEST_ANSWER_BYTES);
        const row = this.copyAt(other, key);
        if (row === undefined || (newest !== undefined && compareVersions(row, newest) <= 0)) return;
        await this.#exchange(site, other, asked, rowsBytes([row]));
        newest = row;
      }),
    );
    return newest;
  }
}
