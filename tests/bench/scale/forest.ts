/**
 * A tree in one process: replicas (the production store over storage in memory) at the root, the cores and as many
 * edges as asked for, doubles (edge_double.ts) as the other edges.
 *
 * F1  Doubles have no delay on their way in and one millisecond on their way out; replicas one each way.
 */
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Replica } from "../../../store/api/api.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import type { Range } from "../../../store/model/range.ts";
import { openReplica } from "../../../store/replica.ts";
import { EdgeDouble } from "./edge_double.ts";
import { VirtualWorld } from "./virtual.ts";

/** What a site is, to its links' counts. */
export type Class = "root" | "core" | "edge" | "double";

export interface Site {
  readonly id: SiteId;
  readonly parent: SiteId | null;
  readonly storage: Storage;
  replica: Replica;
}

interface Node {
  readonly parent: SiteId | null;
  readonly class: Class;
}

const DELAY_MS = 1;

export class Forest {
  readonly world = new VirtualWorld();
  readonly replicas = new Map<SiteId, Site>();
  readonly doubles = new Map<SiteId, EdgeDouble>();
  readonly #nodes = new Map<SiteId, Node>();
  #failure: Error | null = null;
  #drawn = 0;
  /** Of every site started from now on. */
  capacity = 2 ** 34;

  /** Throws what made a site stop. */
  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  #link(from: SiteId, to: SiteId): { link: string; delayMs: number } {
    const a = this.#nodes.get(from), b = this.#nodes.get(to);
    const isTree = a?.parent === to || b?.parent === from;
    return {
      link: isTree ? `${a?.class}>${b?.class}` : "peer",
      delayMs: b?.class === "double" ? 0 : DELAY_MS,
    };
  }

  #send(from: SiteId, to: SiteId, message: Uint8Array): Promise<void> {
    this.world.send(from, to, message, this.#link(from, to));
    return Promise.resolve();
  }

  /** Starts a replica over a disk (default: a blank one), and connects it unless it is to be alone. */
  async replica(
    id: SiteId,
    parent: SiteId | null,
    kind: Class,
    { storage = new MemoryStorage(), alone = false }: { storage?: Storage; alone?: boolean } = {},
  ): Promise<Site> {
    this.#nodes.set(id, { parent, class: kind });
    const replica = await openReplica({
      site: id,
      parent,
      tier: kind,
      url: `http://${id}.example.net:8080`,
      linkAddress: `${id}.example.net:9000`,
      capacityBytes: this.capacity,
    }, {
      clock: this.world,
      random: { bytes: (length) => this.#bytes(length) },
      storage,
      network: { send: (to, message) => this.#send(id, to, message) },
      fatal: (error) => {
        this.#failure ??= error;
      },
      note: () => {},
    });
    const site: Site = { id, parent, storage, replica };
    this.replicas.set(id, site);
    this.world.join(id, replica);
    if (parent !== null && !alone) this.connect(id);
    return site;
  }

  /** A replica that was closed: nothing is left of it but its disk. */
  forget(id: SiteId): void {
    this.replicas.delete(id);
    this.world.leave(id);
  }

  /** Different ones each time, the same in each run. */
  #bytes(length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    new DataView(bytes.buffer).setUint32(0, ++this.#drawn);
    return bytes;
  }

  /** A link comes up at both its ends. */
  connect(id: SiteId): void {
    const parent = this.#nodes.get(id)?.parent ?? "";
    this.replicas.get(parent)?.replica.connected(id, "child");
    this.replicas.get(id)?.replica.connected(parent, "parent");
    this.doubles.get(id)?.connect();
  }

  disconnect(id: SiteId): void {
    const parent = this.#nodes.get(id)?.parent ?? "";
    this.replicas.get(parent)?.replica.disconnected(id);
    this.replicas.get(id)?.replica.disconnected(parent);
    this.doubles.get(id)?.disconnect();
  }

  /** A double, not yet connected. */
  double(id: SiteId, parent: SiteId, ranges: readonly Range[] = []): EdgeDouble {
    this.#nodes.set(id, { parent, class: "double" });
    const double = new EdgeDouble(id, this.world, ranges, (message) => void this.#send(id, parent, message));
    this.doubles.set(id, double);
    this.world.join(id, double);
    return double;
  }

  /** Until every site is there. Returns the virtual time that it took. */
  async ready(): Promise<number> {
    let open = 0;
    for (const { replica } of this.replicas.values()) {
      open++;
      void replica.ready.then(() => open--);
    }
    const ms = await this.world.until(() => {
      this.check();
      return open === 0 && this.#live();
    }, "joining");
    return ms;
  }

  #live(): boolean {
    for (const double of this.doubles.values()) if (!double.live) return false;
    return true;
  }
}

/** N edges below `cores` cores (none: below the root); the first `real` of each core are replicas. */
export async function plant(
  o: { cores: number; edges: number; real: (edge: number) => boolean },
): Promise<Forest> {
  const forest = new Forest();
  await forest.replica("root", null, "root");
  for (let i = 0; i < o.cores; i++) await forest.replica(`core-${i}`, "root", "core");
  await forest.ready();
  for (let i = 0; i < o.edges; i++) {
    const parent = o.cores === 0 ? "root" : `core-${i % o.cores}`;
    if (o.real(i)) await forest.replica(`edge-${i}`, parent, "edge");
    else {
      forest.double(`edge-${i}`, parent);
      forest.connect(`edge-${i}`);
    }
  }
  return forest;
}
