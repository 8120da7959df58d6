/** What a stateful session at home (live_home.ts) needs of its site, and what it begins with. */
import type { Choice } from "../../../store/presence/choose.ts";
import type { Standing } from "../../../store/presence/detector.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { HomeError, StatefulName } from "../log/api.ts";
import type { Base, LogPiece, LogState, RowState, SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import type { Promised } from "../log/follower.ts";
import type { StateMark } from "../log/state_parts.ts";

/** What a home needs of its site. */
export interface LiveHomePorts<Home> {
  readonly site: SiteId;
  readonly nowMs: () => number;
  ask(to: SiteId, ask: SiteAsk): Asking;
  /** Asks for a while only: who does not hear of it then finds out. */
  tell(to: SiteId, ask: SiteAsk): void;
  /** The log on this site's own disk goes, since it has ended; resolves when that is so. */
  ended(name: StatefulName, epoch: number): Promise<void>;
  arbiter(): SiteId;
  /** The site that is an owner only while no other can be; null: there is none such. */
  last(): SiteId | null;
  readonly f: () => number;
  /** @throws OwnersError */
  choose(kept: readonly SiteId[], without: (site: SiteId) => boolean): Choice;
  isKnown(site: SiteId): boolean;
  standing(site: SiteId): Standing;
  watch(site: SiteId): () => void;
  /** This site's own log of it, as it is in memory, and what is on its disk of it. */
  state(name: StatefulName): LogState;
  /** The entry that its base stands for. */
  baseAt(name: StatefulName): number;
  read(name: StatefulName, after: number): Promise<readonly LogPiece[]>;
  base(name: StatefulName): Promise<Base | null>;
  /** Whether its base's state begins with what a mark names. */
  hasState(name: StatefulName, mark: StateMark): boolean;
  /** Parts of the state of the base at an entry; null: it has another by now. */
  parts(name: StatefulName, at: number, first: number): Promise<readonly Uint8Array[] | null>;
  count(name: string): void;
  note(event: string, detail: Record<string, unknown>): void;
  /** It is no home any more. */
  over(home: Home, error: HomeError): void;
}

/** What is known when it opens. */
export interface LiveHomeStart {
  readonly name: StatefulName;
  readonly row: Pick<RowState, "epoch" | "config" | "owners">;
  readonly seed: Uint8Array;
  readonly version: string;
  readonly disk: number;
  /** Owners that have promised already. */
  readonly promised: ReadonlyMap<SiteId, Promised>;
  /** Hosts that have, and the last entry that each holds. */
  readonly hosts?: ReadonlyMap<string, number>;
  /** Nobody but this process knows its name: its log is begun where the arbiter's record of births says. */
  readonly isBorn: boolean;
}
