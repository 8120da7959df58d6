/**
 * A tuple at one of its owners, in memory and on disk.
 *
 * On disk: ["t", id] → version, owners, former owners, gone?, payload; ["m", id] → the same without a payload, newer
 * than what stands in ["t", id].
 *
 * T1  Of two versions the larger one holds; of two equal ones that of the larger responsible site. What is gone is
 *     newer than all that is not.
 */
import { Reader, Writer } from "../model/codec.ts";
import type { SiteId } from "../model/ports.ts";
import type { Entry, TupleId } from "./packet.ts";

/** What is stored of a tuple beside its payload. */
export interface TupleState {
  readonly version: number;
  /** Responsible first. */
  readonly owners: readonly SiteId[];
  /** Owners once, which may not know yet that they are none any more. */
  readonly former: readonly SiteId[];
  readonly gone: boolean;
}

/** One for all: most tuples owe nobody anything most of the time. */
const NONE: readonly SiteId[] = [];

export class Tuple implements TupleState {
  readonly id: TupleId;
  version: number;
  owners: readonly SiteId[];
  former: readonly SiteId[];
  gone: boolean;
  /** In memory as long as somebody needs it, and while the disk does not have it. */
  payload: Uint8Array | null = null;
  /** Sites that have not said that they have this version on disk; kept by the one who tells it. */
  unacked: readonly SiteId[] = NONE;
  /** All its owners had it once: it counts. */
  held: boolean;
  /** The user was told that it is this site's. */
  acting = false;
  /** Whether it may change hands is being asked. */
  asking = false;
  how: "stored" | "adopted" | "loaded" = "loaded";
  /** Owners before this site that were asked whether they have it, and those that have lost it with their disk. */
  doubts: Map<SiteId, "asked" | "lost"> | null = null;
  /** Owners that had no room for it when they were told last. */
  refusedBy: readonly SiteId[] = NONE;
  /** It is gone, and perhaps nobody has acted on it: its producer was refused. */
  isUnsure = false;
  /** When this site learnt from another that it is gone. */
  goneMs = 0;

  constructor(id: TupleId, state: TupleState, held: boolean) {
    this.id = id;
    this.version = state.version;
    this.owners = state.owners;
    this.former = state.former;
    this.gone = state.gone;
    this.held = held;
  }

  get responsible(): SiteId {
    return this.owners[0] ?? "";
  }

  /** Everybody who may have it. */
  get sites(): readonly SiteId[] {
    return this.former.length === 0 ? this.owners : [...this.owners, ...this.former];
  }

  /** A site had no room for it, or may have some. */
  refuses(site: SiteId, isFull: boolean): void {
    if (this.refusedBy.includes(site) === isFull) return;
    const others = this.refusedBy.filter((one) => one !== site);
    this.refusedBy = isFull ? [...others, site] : others.length > 0 ? others : NONE;
  }

  /** A site is to be told this version. */
  owe(site: SiteId): void {
    if (!this.unacked.includes(site)) this.unacked = [...this.unacked, site];
  }

  /** A site has it; false where it owed no answer. */
  settle(site: SiteId): boolean {
    if (!this.unacked.includes(site)) return false;
    const left = this.unacked.filter((one) => one !== site);
    this.unacked = left.length === 0 ? NONE : left;
    return true;
  }

  entry(payload: Uint8Array | null = null): Entry {
    const { id, version, owners, gone } = this;
    return { id, version, owners, gone, payload: gone ? null : payload };
  }
}

/** Negative, zero or positive as a is older than, the same as or newer than b (T1). */
export function compareEntries(
  a: Pick<Entry, "version" | "owners" | "gone">,
  b: Pick<Entry, "version" | "owners" | "gone">,
): number {
  if (a.gone !== b.gone) return a.gone ? 1 : -1;
  if (a.version !== b.version) return a.version - b.version;
  const [x = "", y = ""] = [a.owners[0], b.owners[0]];
  return x === y ? 0 : x < y ? -1 : 1;
}

export function encodeState(state: TupleState, payload: Uint8Array | null): Uint8Array<ArrayBuffer> {
  const w = new Writer(64 + (payload?.length ?? 0)).uint(state.version).flag(state.gone);
  w.list(state.owners, (site) => w.text(site)).list(state.former, (site) => w.text(site));
  return w.bytes(payload ?? new Uint8Array()).done();
}

export function decodeState(bytes: Uint8Array): { state: TupleState; payload: Uint8Array } {
  const r = new Reader(bytes);
  const version = r.uint(), gone = r.flag();
  const state = { version, gone, owners: r.list(() => r.text()), former: r.list(() => r.text()) };
  return { state, payload: r.bytes() };
}
