/**
 * Interface between an owner that keeps tuples (custody.ts) and its site, its disk, and those that are told of changes.
 */
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
  /** Milliseconds of the wall clock: until when ids are remembered is told and kept by it. */
  readonly wallMs: () => number;
  readonly table: TupleTable;
  readonly shelf: Shelf;
  /** @throws OwnersError */
  readonly choose: (f: number, kept: readonly SiteId[]) => Choice;
  readonly isKnown: (site: SiteId) => boolean;
  /** Reports whether a site never belonged to the tree, as far as is known here; others may know better. */
  readonly isStranger: (site: SiteId) => boolean;
  readonly standing: (site: SiteId) => Standing;
  /** Time until which a site said that it is away; null where it did not say so, or that time is over. */
  readonly awaitedUntilMs: (site: SiteId) => number | null;
  readonly hasRoom: (bytes: number) => boolean;
  readonly count: (name: string) => void;
  /** Called where something that a site says is not taken. */
  readonly refused: (event: string, from: SiteId) => void;
  readonly fail: (error: unknown) => void;
  /** Called where something is to be written or told. */
  readonly wake: () => void;
  /** Called once as many owners as a tuple wants have it on disk. */
  readonly held: (id: TupleId) => void;
  /** Called where an owner that another site is to give the tuple to does not have it yet. */
  readonly lacking: (id: TupleId) => void;
  /** Called where another site's version of a tuple holds, or the tuple is gone; `isDone`: and was acted on. */
  readonly overtaken: (id: TupleId, isDone: boolean) => void;
  readonly mine: (tuple: Tuple) => void;
  readonly lost: (tuple: Tuple) => void;
}
