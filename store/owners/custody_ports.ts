/** What an owner needs of those around it to keep tuples (custody.ts): its site, its disk, and who is told of what. */
import type { SiteId } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Standing } from "../presence/detector.ts";
import type { TupleId } from "./packet.ts";
import type { Shelf } from "./shelf.ts";
import type { Tuple } from "./tuple.ts";

export interface CustodyPorts {
  readonly site: SiteId;
  readonly nowMs: () => number;
  readonly shelf: Shelf;
  /** Other owners wanted. */
  readonly f: () => number;
  /** @throws OwnersError */
  readonly choose: (kept: readonly SiteId[]) => Choice;
  readonly isKnown: (site: SiteId) => boolean;
  /** It never belonged to the tree, as far as is known here; others may know better. */
  readonly isStranger: (site: SiteId) => boolean;
  readonly standing: (site: SiteId) => Standing;
  readonly hasRoom: () => boolean;
  readonly count: (name: string) => void;
  /** What a site says is not taken. */
  readonly refused: (event: string, from: SiteId) => void;
  readonly fail: (error: unknown) => void;
  /** Something is to be written or told. */
  readonly wake: () => void;
  /** All owners have it for the first time. */
  readonly held: (tuple: Tuple) => void;
  /** Another site has taken it over before that; `gone`: and was done with it. */
  readonly overtaken: (id: TupleId, gone: boolean) => void;
  readonly mine: (tuple: Tuple) => void;
  readonly lost: (id: TupleId) => void;
  readonly mayChange: ((id: TupleId, from: readonly SiteId[]) => Promise<boolean>) | undefined;
}
