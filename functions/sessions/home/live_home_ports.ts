/** Ports of a stateful session at home (live_home.ts): what it needs of its site, and what it begins with. */
import type { Choice } from "../../../store/presence/choose.ts";
import type { Standing } from "../../../store/presence/detector.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { HomeError, StatefulName } from "../log/api.ts";
import type { Base, LogPiece, LogState, RowState, SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import type { Promised } from "../log/follower.ts";
import type { StateMark } from "../log/state_parts.ts";

/** Site, as a home needs it. */
export interface LiveHomePorts<Home> {
  readonly site: SiteId;
  readonly nowMs: () => number;
  ask(to: SiteId, ask: SiteAsk): Asking;
  /** Asks for a while only: a site that does not hear of it then finds out. */
  tell(to: SiteId, ask: SiteAsk): void;
  /** Drops the log on this site's own disk, since the session has ended; resolves when it is gone. */
  ended(name: StatefulName, epoch: number): Promise<void>;
  arbiter(): SiteId;
  /** Returns the site that is an owner only while no other can be; null: there is none such. */
  last(): SiteId | null;
  readonly f: () => number;
  /** Chooses owners. @throws OwnersError */
  choose(kept: readonly SiteId[], without: (site: SiteId) => boolean): Choice;
  isKnown(site: SiteId): boolean;
  standing(site: SiteId): Standing;
  watch(site: SiteId): () => void;
  /** Returns the state of this site's own log, as it is in memory. */
  state(name: StatefulName): LogState;
  /** Returns the entry that the own log's base stands for. */
  baseAt(name: StatefulName): number;
  read(name: StatefulName, after: number): Promise<readonly LogPiece[]>;
  base(name: StatefulName): Promise<Base | null>;
  /** Reports whether the state of the own log's base begins with what a mark names. */
  hasState(name: StatefulName, mark: StateMark): boolean;
  /** Returns parts of the state of the base at an entry; null where the own log has another base by now. */
  parts(name: StatefulName, at: number, first: number): Promise<readonly Uint8Array[] | null>;
  count(name: string): void;
  note(event: string, detail: Record<string, unknown>): void;
  /** Notes that a home is none any more. */
  over(home: Home, error: HomeError): void;
}

/** State with which a home opens. */
export interface LiveHomeStart {
  readonly name: StatefulName;
  readonly row: Pick<RowState, "epoch" | "config" | "owners">;
  readonly seed: Uint8Array;
  readonly version: string;
  readonly disk: number;
  /** Answers of owners that have promised already. */
  readonly promised: ReadonlyMap<SiteId, Promised>;
  /** Last entry that each host holds that has promised. */
  readonly hosts?: ReadonlyMap<string, number>;
  /** True where nobody but this process knows the session's name: its log is begun where the record of births says. */
  readonly isBorn: boolean;
}
