/** Rows that stateful sessions write as their own, as they were seen on the disks of sites. */
import { packKey, unpackKey } from "../../store/model/key.ts";
import { resolve } from "../../store/model/merge.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import type { SessionSeen, Written } from "./checker.ts";
import { APP } from "./deployed.ts";

const text = new TextDecoder();
/** As the program names them: `put` has three. */
const PUTS = 3;
const PUT = packKey(["a", APP, "put"]), SWAP = packKey(["a", APP, "swap"]);

interface Own {
  readonly put: Map<string, Written>;
  readonly swapped: Map<string, Written>;
  /** On the disk of the root. */
  readonly putAtRoot: (string | null)[];
  swapAtRoot: string | null;
}

/** See the file's header. */
export class OwnRows {
  readonly #root: SiteId;
  readonly #own = new Map<string, Own>();

  constructor(root: SiteId) {
    this.#root = root;
  }

  /** These are on the disk of a site. */
  saw(site: SiteId, rows: readonly Row[]): void {
    for (const row of rows) this.#saw(site, row);
  }

  #saw(site: SiteId, row: Row): void {
    const isPut = row.key.startsWith(PUT);
    if (!isPut && !row.key.startsWith(SWAP)) return;
    const [id, number] = unpackKey(row.key).slice(3);
    if (typeof id !== "string") return;
    const bytes = resolve(row.value);
    if (bytes === null) return;
    const value = text.decode(bytes.subarray(1)), version = versionstamp(row);
    const own = this.#of(id);
    const seen = isPut ? own.put : own.swapped;
    seen.set(`${version} ${value}`, { value, version });
    if (site !== this.#root) return;
    if (!isPut) own.swapAtRoot = value;
    else own.putAtRoot[Number(number)] = value;
  }

  /** What was seen of a session's. */
  of(id: string): Pick<SessionSeen, "put" | "swapped" | "atRoot"> {
    const { put, swapped, putAtRoot, swapAtRoot } = this.#of(id);
    return {
      put: [...put.values()],
      swapped: [...swapped.values()],
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
