/**
 * Audit of logs that nobody told this site to forget: a log that was not written for ten minutes, and is not at home
 * here, is asked after at the arbiter, and dropped where this disk is no owner of it any more. The arbiter drops its
 * own old rows meanwhile.
 *
 * A1  A log is dropped only where the arbiter has a later epoch, or the end, on record: a home that has begun a log
 *     here, and has not had it recorded yet, has the epoch that the arbiter knows.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner, StatefulName } from "../log/api.ts";
import type { Arbiter } from "./arbiter.ts";
import type { RowState } from "../log/asks.ts";
import { asError } from "../log/group_commit.ts";
import type { Keepers } from "../log/keepers.ts";
import type { KeptLog } from "../log/kept_log.ts";
import { AUDIT_AT_ONCE, AUDIT_MS } from "../log/limits.ts";
import type { RecoveryPorts } from "./recovery.ts";

/** Interval of looks: one through all that is kept takes some milliseconds. */
const LOOK_EVERY_MS = AUDIT_MS / 10;
/** Time for the arbiter's answer; without one the log is looked at again later. */
const LOOK_MS_MAX = 4_000;
const SWEEP_EVERY_MS = 3_600_000;

type AuditPorts = RecoveryPorts & {
  readonly keepers: Keepers;
  readonly wallMs: () => number;
  /** Time for which it is known here that a name has ended (recollection.ts, RE2). */
  readonly endedMs: number;
  /** Stops the site: a disk does not give what it has. */
  readonly fatal: (error: Error) => void;
};

export class Audit {
  readonly #ports: AuditPorts;
  readonly #isAtHome: (name: StatefulName) => boolean;
  #lookedMs: number;
  #sweptMs: number;
  #isRunning = false;

  constructor(
    ports: AuditPorts,
    isAtHome: (name: StatefulName) => boolean,
  ) {
    this.#ports = ports;
    this.#isAtHome = isAtHome;
    this.#lookedMs = this.#sweptMs = ports.nowMs();
  }

  tick(arbiter: Arbiter | null): void {
    const nowMs = this.#ports.nowMs();
    if (nowMs - this.#sweptMs >= SWEEP_EVERY_MS) {
      const { keepers, wallMs, endedMs } = this.#ports;
      this.#sweptMs = nowMs;
      arbiter?.sweep().catch(this.#failed);
      keepers.recollection.sweep(wallMs() - endedMs).catch(this.#failed);
    }
    if (this.#isRunning || nowMs - this.#lookedMs < LOOK_EVERY_MS) return;
    this.#lookedMs = nowMs;
    this.#isRunning = true;
    void this.#look(nowMs).finally(() => this.#isRunning = false);
  }

  readonly #failed = (error: unknown): void => this.#ports.fatal(asError(error));

  async #look(nowMs: number): Promise<void> {
    const old: KeptLog[] = [];
    for (const log of this.#ports.keepers.all()) {
      if (old.length === AUDIT_AT_ONCE) break;
      if (nowMs - log.writtenMs >= AUDIT_MS && !this.#isAtHome(log.name)) old.push(log);
    }
    await Promise.all(old.map((log) => this.#lookAt(log)));
  }

  /**
   * Returns the session's home, as the arbiter says now, where this disk is an owner; null where it is none, or that is
   * not known. A log that this disk should not have is dropped.
   */
  async home(name: StatefulName): Promise<SiteId | null> {
    const { keepers, site, count } = this.#ports, disk = this.#ports.disk();
    const row = await this.record(name);
    if (row === null || this.#isAtHome(name)) return null;
    const isOwner = row.owners.some((owner) => owner.site === site && owner.disk === disk); // A1
    if (isOwner && !row.ended) return row.movesTo === "" ? row.site : row.movesTo;
    count("audited_away");
    await keepers.forgetFormer(name, row.ended ? row.epoch + 1 : row.epoch).catch(this.#failed); // A1
    return null;
  }

  /**
   * Returns the owners but the one at the home, the nearest first, as the arbiter says now; null where it does not say.
   */
  async owners(name: StatefulName): Promise<readonly Owner[] | null> {
    const row = await this.record(name);
    return row === null || row.ended ? null : row.owners.filter(({ site }) => site !== row.site);
  }

  async #lookAt(log: KeptLog): Promise<void> {
    log.writtenMs = this.#ports.nowMs();
    await this.home(log.name);
  }

  /** Returns the arbiter's row of a name; null: none, or no answer. */
  async record(name: StatefulName): Promise<RowState | null> {
    const { ask, arbiter, after } = this.#ports;
    const asking = ask(arbiter(), { kind: "look", name });
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const cancel = after(LOOK_MS_MAX, () => resolve(null));
    const reply = await Promise.race([asking.reply, late]);
    cancel();
    asking.cancel();
    return reply?.kind === "row" ? reply.row : null;
  }
}
