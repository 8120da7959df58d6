/**
 * All that a replica has to do with wards, its own and others', so that pending rows survive their site
 * (docs/decisions, "Wards"; PROTOCOL O1–O6).
 */
import type { ReplicaStatus, TokenState } from "../api/api.ts";
import type { Core, Mark } from "../core/core.ts";
import type { Carry } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import type { Frozen } from "../rows/rows.ts";
import type { ClockValue } from "../model/row.ts";
import { Keeper } from "./keeper.ts";
import type { WardTalk } from "../wire/ward_message.ts";
import { WardRecovery } from "./recovery.ts";
import { Regain } from "./regain.ts";
import { Retake } from "./retake.ts";
import { SOURCE_RECORD, type SourceHost, WardSource } from "./source.ts";
import { type Around, type AskLiving, StandIns } from "./stand_in.ts";

export interface WardsHost extends SourceHost {
  /** Resolves when what was recorded before the call is on disk. */
  afterCommit(): Promise<void>;
  /** Returns this site's own stable clock now. */
  stableOwn(): ClockValue;
}

export class Wards {
  readonly #core: Core;
  readonly #host: WardsHost;
  readonly source: WardSource;
  readonly keeper: Keeper;
  readonly #standIns: StandIns;
  readonly #recovery: WardRecovery;
  readonly #retake: Retake;
  readonly #regain: Regain;

  constructor(core: Core, host: WardsHost) {
    this.#core = core;
    this.#host = host;
    this.source = new WardSource(core, host);
    this.keeper = new Keeper(core, host.afterCommit);
    this.#standIns = new StandIns(core, this.keeper);
    this.#recovery = new WardRecovery(core, this.keeper, host.stableOwn);
    this.#retake = new Retake(core, {
      ask: (owner, wanted) => this.#standIns.ask(owner, wanted),
      fail: host.fail,
    });
    this.#regain = new Regain(core, {
      ask: (owner, wanted) => this.#standIns.ask(owner, wanted),
      owners: () => this.source.effective?.owners ?? [],
      fail: host.fail,
    });
  }

  restore(name: string, value: Uint8Array): boolean {
    if (name === SOURCE_RECORD) this.source.restore(value);
    else return this.keeper.restore(name, value);
    return true;
  }

  /** The oldest version that stands here for another site; Infinity where there is none (PROTOCOL I9). */
  get least(): ClockValue {
    let least: ClockValue = Infinity;
    for (const ward of this.keeper.all()) for (const { clock } of ward.rows()) least = Math.min(least, clock);
    return least;
  }

  /** Notes that the disk was loaded. */
  loaded(): void {
    this.keeper.loaded();
    this.source.loaded();
  }

  status(): ReplicaStatus["wards"] {
    const { effective, next, isClosed, isAlone, silent } = this.source;
    return {
      owners: effective?.owners ?? [],
      next: next?.owners ?? null,
      isClosed,
      isAlone,
      silent,
      heldBytes: this.keeper.bytes,
    };
  }

  /** Reports whether what this site had told before it lost its disk is back; if not, calls back when to ask again. */
  isRetaken(again: () => void): boolean {
    return this.#retake.isOver(again);
  }

  /** Notes that the site serves: rows that it had told and could not take back before are asked for beside that. */
  ready(): void {
    this.#retake.begin();
  }

  /** Asks owners for rows that the disk has damaged. */
  regain(): void {
    this.#regain.begin();
  }

  prepare(): void {
    this.source.prepare();
  }

  committed(frozen: Frozen): void {
    this.source.committed(frozen);
  }

  async flush(mark: Mark): Promise<number> {
    await this.#recovery.sweep();
    return await this.source.flush(mark);
  }

  connected(site: SiteId): void {
    this.source.connected(site);
  }

  disconnected(site: SiteId): void {
    this.source.disconnected(site);
    this.keeper.disconnected(site);
    this.unreachable(site);
  }

  /** Notes that a dial has failed, and with it what was to be sent. */
  unreachable(site: SiteId): void {
    this.#standIns.unreachable(site);
  }

  receive(from: SiteId, message: WardTalk): void {
    const core = this.#core;
    switch (message.kind) {
      case "ward":
        this.keeper.receive(from, message).catch(this.#host.fail);
        return;
      case "warded":
        return this.source.warded(from, message);
      case "release":
        return this.keeper.release(from, message);
      case "standIn":
        core.send(from, this.keeper.standIn(message));
        return;
      case "stoodIn":
        return this.#standIns.answered(from, message);
      case "newest":
        if (message.isAnswer) return this.#standIns.answered(from, message);
        if (!core.isRoot) return;
        core.send(from, {
          ...message,
          isAnswer: true,
          config: core.topology.wards.of(message.replica)?.number ?? 0,
        });
    }
  }

  /** Gathers from others what the source of a token would carry; null: nobody has it. */
  carry(token: TokenState, around: Around, askLiving: AskLiving): Promise<Carry | null> {
    return this.#standIns.carry(token, around, askLiving);
  }
}
