/** Rows that stateful sessions write as their own, as they were seen on the disks of sites. */
import { packKey, unpackKey } from "../../store/model/key.ts";
import { resolve } from "../../store/model/merge.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import type { DiskWatch } from "../sim/recording.ts";
import type { SessionSeen, Written } from "./checker.ts";
import { APP } from "./deployed.ts";

const text = new TextDecoder();
/** As the program names them: `put` has three. */
const PUTS = 3;
const PUT = packKey(["a", APP, "put"]), SWAP = packKey(["a", APP, "swap"]);

/** One of them, and where it is. */
interface Held {
  readonly value: string;
  readonly version: string;
  /** Sites whose disks have had it, as a row or for others, and were not lost since. */
  readonly on: Set<SiteId>;
  /** Another version of the same was on a disk while this one was. */
  isBeside: boolean;
}

interface Own {
  readonly put: Map<string, Held>;
  readonly swapped: Map<string, Held>;
  /** On the disk of the root. */
  readonly putAtRoot: (string | null)[];
  swapAtRoot: string | null;
}

/** See the file's header. */
export class OwnRows implements DiskWatch {
  readonly #root: SiteId;
  readonly #own = new Map<string, Own>();

  constructor(root: SiteId) {
    this.#root = root;
  }

  holds(site: SiteId, rows: readonly Row[], isOwn: boolean): void {
    for (const row of rows) this.#saw(site, row, isOwn);
  }

  lost(site: SiteId): void {
    for (const { put, swapped } of this.#own.values()) {
      for (const { on } of [...put.values(), ...swapped.values()]) on.delete(site);
    }
  }

  #saw(site: SiteId, row: Row, isOwn: boolean): void {
    const isPut = row.key.startsWith(PUT);
    if (!isPut && !row.key.startsWith(SWAP)) return;
    const [id, number] = unpackKey(row.key).slice(3);
    if (typeof id !== "string") return;
    const bytes = resolve(row.value);
    if (bytes === null) return;
    const value = text.decode(bytes.subarray(1)), version = versionstamp(row);
    const own = this.#of(id);
    const seen = isPut ? own.put : own.swapped, name = `${version} ${value}`;
    const held = seen.get(name) ?? { value, version, on: new Set(), isBeside: false };
    seen.set(name, held);
    held.on.add(site);
    for (const other of seen.values()) {
      if (other === held || other.value !== value || other.on.size === 0) continue;
      held.isBeside = other.isBeside = true;
    }
    if (site !== this.#root || !isOwn) return;
    if (!isPut) own.swapAtRoot = value;
    else own.putAtRoot[Number(number)] = value;
  }

  /** What was seen of a session's. */
  of(id: string): Pick<SessionSeen, "put" | "swapped" | "atRoot"> {
    const { put, swapped, putAtRoot, swapAtRoot } = this.#of(id);
    return {
      put: [...put.values()].map(writtenOf),
      swapped: [...swapped.values()].map(writtenOf),
      atRoot: { put: putAtRoot, swap: swapAtRoot },
    };
  }

  #of(id: string): Own {
    const own = this.#own.get(id) ??
      { put: new Map(), swapped: new Map(), putAtRoot: new Array(PUTS).fill(null), swapAtRoot: null };
    this.#own.set(id, own);
    return own;
  }
}

const writtenOf = ({ value, version, on, isBeside }: Held): Written => ({
  ...{ value, version, isGone: on.size === 0 && !isBeside },
});
