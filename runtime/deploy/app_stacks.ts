/**
 * Stacks of running apps, told as places in the modules that their authors wrote: by the source map that was
 * deployed with a version, read when a text has a place of its bundle in it.
 *
 * L1  Lines of one version leave in the order in which they came, whether or not a map had to be fetched first.
 * L2  A map that is absent, malformed or too large leaves the text as it was; nothing fails for want of a map.
 * L3  At most {@link WAITING_MAX} lines wait for a map; those after them leave as they are, in turn.
 */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { hasPlaces, type Locate, mapLocator } from "../bundle/source_places.ts";
import type { SystemStore } from "./app_table.ts";
import type { BlobReader, BlobRef } from "./blobs.ts";
import { readMapRef } from "./version_files.ts";

/** A map of the largest bundle has a third of this; more is what unpacks to more than it says. */
const MAP_BYTES_MAX = 64 * 1024 * 1024;
/** Parsed maps kept, each some MB; apps that fail at the same time are few. */
const MAPS_MAX = 8;
/** Lines that wait while a map is fetched, which takes a round trip. */
const WAITING_MAX = 1_000;

/** A line that an app printed. */
export interface PrintedLine {
  readonly version: string;
  readonly text: string;
}

const asIs: Locate = (text) => text;

/** Maps the stacks of one site's apps. */
export class AppStacks {
  readonly #system: SystemStore;
  readonly #blobs: BlobReader;
  readonly #note: (event: string, detail: Record<string, unknown>) => void;
  /** By digest; the one used longest ago goes first. */
  readonly #maps = new Map<string, Promise<Locate>>();
  readonly #waiting = new Map<string, { last: Promise<void>; count: number }>();

  constructor(
    system: SystemStore,
    blobs: BlobReader,
    note: (event: string, detail: Record<string, unknown>) => void,
  ) {
    this.#system = system;
    this.#blobs = blobs;
    this.#note = note;
  }

  /** Passes on a line with its places told, at once where it has none and none waits (L1). */
  line<L extends PrintedLine>(line: L, pass: (line: L) => void): void {
    const queue = this.#waiting.get(line.version);
    if (queue === undefined && !hasPlaces(line.text)) return pass(line);
    const count = (queue?.count ?? 0) + 1;
    const mapped = count > WAITING_MAX ? Promise.resolve(line.text) : this.mapped(line.version, line.text);
    const last = Promise.all([mapped, queue?.last]).then(([text]) => {
      pass({ ...line, text });
      const now = this.#waiting.get(line.version);
      if (now !== undefined && --now.count === 0) this.#waiting.delete(line.version);
    });
    this.#waiting.set(line.version, { last, count });
  }

  /** A text with its places told. Never rejects (L2). */
  async mapped(version: string, text: string): Promise<string> {
    if (!hasPlaces(text)) return text;
    try {
      return (await this.#locate(version))(text);
    } catch {
      return text; // L2
    }
  }

  async #locate(version: string): Promise<Locate> {
    const ref = await readMapRef(this.#system, version); // a row of this site, once it has been read
    if (ref === undefined) return asIs;
    const known = this.#maps.get(ref.sha256);
    const locate = known ?? this.#read(ref).catch((error: unknown) => {
      this.#note("source_map_unread", { version, error: String(error) });
      return asIs;
    });
    this.#maps.delete(ref.sha256); // and in again, as the newest
    this.#maps.set(ref.sha256, locate);
    for (const oldest of this.#maps.keys()) {
      if (this.#maps.size <= MAPS_MAX) break;
      this.#maps.delete(oldest);
    }
    return await locate;
  }

  async #read(ref: BlobRef): Promise<Locate> {
    const packed = await this.#blobs.once(ref);
    const json = await promisify(gunzip)(packed, { maxOutputLength: MAP_BYTES_MAX });
    return mapLocator(new TextDecoder().decode(json), (source) => source);
  }
}
