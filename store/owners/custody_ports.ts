/** What an owner needs of those around it to keep tuples (custody.ts): its site, its disk, and who is told of what. */
import type { SiteId } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Standing } from "../presence/detector.ts";
import type { TupleId } from "./packet.ts";
import type { Shelf } from "./shelf.ts";
import type { Tuple } from "./tuple.ts";
import type { TupleTable } from "./tuple_table.ts";

export interface CustodyPorts {
  readonly site: SiteId;
  readonly nowMs: () => number;
  /** The wall clock: until when ids are remembered is told and kept by it. */
  readonly wallMs: () => number;
  readonly table: TupleTable;
  readonly shelf: Shelf;
  /** @throws OwnersError */
  readonly choose: (f: number, kept: readonly SiteId[]) => Choice;
  readonly isKnown: (site: SiteId) => boolean;
  /** It never belonged to the tree, as far as is known here; others may know better. */
  readonly isStranger: (site: SiteId) => boolean;
  readonly standing: (site: SiteId) => Standing;
  /** Until when it said that it is away; null where it did not, or that time is over. */
  readonly awaitedUntilMs: (site: SiteId) => number | null;
  readonly hasRoom: (bytes: number) => boolean;
  readonly count: (name: string) => void;
  /** What a site says is not taken. */
  readonly refused: (event: string, from: SiteId) => void;
  readonly fail: (error: unknown) => void;
  /** Something is to be written or told. */
  readonly wake: () => void;
  /** As many owners as it wants have it on disk. */
  readonly held: (id: TupleId) => void;
  /** An owner that another site is to give it to does not have it yet. */
  readonly lacking: (id: TupleId) => void;
  /** Another site's word holds, or it is gone; `isDone`: and was acted on. */
  readonly overtaken: (id: TupleId, isDone: boolean) => void;
  readonly mine: (tuple: Tuple) => void;
  readonly lost: (tuple: Tuple) => void;
}
