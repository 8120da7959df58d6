/**
 * Stacks of running apps, translated to places in the modules that their authors wrote, by the source map that was
 * deployed with a version. A map is read when a text has a place of its bundle in it.
 *
 * APS1  Lines of one version leave in the order in which they came, whether or not a map had to be fetched first.
 * APS2  A map that is absent, malformed or too large leaves the text as it was; nothing fails for want of a map.
 * APS3  At most {@link WAITING_MAX} lines of a version wait for its map, and {@link WAITING_CHARACTERS_MAX} characters:
 *       when one more comes, all of them leave as they are, the new one included.
 */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { hasPlaces, type Locate, mapLocator } from "../bundle/source_places.ts";
import type { SystemStore } from "./app_table.ts";
import type { BlobReader, BlobRef } from "./blobs.ts";
import { readMapRef } from "./version_files.ts";

/**
 * Bytes of the largest map: that of the largest bundle has a third of this; a larger one unpacks to more than it says.
 */
const MAP_BYTES_MAX = 64 * 1024 * 1024;
/** Parsed maps that are kept, each some MB; apps that fail at the same time are few. */
const MAPS_MAX = 8;
/** Lines of a version that wait while its map is fetched, which takes a round trip. */
const WAITING_MAX = 1_000;
/** Characters of the waiting lines, which may be long: the most that an app may print within four seconds. */
const WAITING_CHARACTERS_MAX = 1024 * 1024;

/** A line that an app printed. */
export interface PrintedLine {
  readonly version: string;
  readonly text: string;
}

/** The lines of a version that wait for its map, in the order in which they came (APS1). */
interface LineQueue {
  /** Functions that each pass a line on, with its places translated. */
  waiting: ((locate: Locate) => void)[];
  characters: number;
}

const asIs: Locate = (text) => text;

/** Translates the places of a text; returns it as it was where that fails (APS2). */
function located(text: string, locate: Locate): string {
  if (!hasPlaces(text)) return text;
  try {
    return locate(text);
  } catch {
    return text;
  }
}

/** Maps the stacks of one site's apps. */
export class AppStacks {
  readonly #system: SystemStore;
  readonly #blobs: BlobReader;
  readonly #note: (event: string, detail: Record<string, unknown>) => void;
  /** Parsed maps by digest; the one used longest ago goes first. */
  readonly #maps = new Map<string, Promise<Locate>>();
  readonly #waiting = new Map<string, LineQueue>();

  constructor(
    system: SystemStore,
    blobs: BlobReader,
    note: (event: string, detail: Record<string, unknown>) => void,
  ) {
    this.#system = system;
    this.#blobs = blobs;
    this.#note = note;
  }

  /** Passes on a line with its places translated, at once where it has none and none waits (APS1). */
  line<L extends PrintedLine>(line: L, pass: (line: L) => void): void {
    const { version, text } = line;
    const known = this.#waiting.get(version);
    if (known === undefined && !hasPlaces(text)) return pass(line);
    const queue = known ?? this.#queue(version);
    const isFull = queue.waiting.length >= WAITING_MAX ||
      queue.characters + text.length > WAITING_CHARACTERS_MAX;
    queue.waiting.push((locate) => pass({ ...line, text: located(text, locate) }));
    queue.characters += text.length;
    if (isFull) this.#passAll(queue, asIs); // APS3
  }

  /**
   * Begins the wait for a version's map, which serves all lines that come until it is there. Lines that have left are
   * held by nothing.
   */
  #queue(version: string): LineQueue {
    const queue: LineQueue = { waiting: [], characters: 0 };
    this.#waiting.set(version, queue);
    void this.#locate(version).catch(() => asIs).then((locate) => {
      this.#waiting.delete(version);
      this.#passAll(queue, locate);
    });
    return queue;
  }

  #passAll(queue: LineQueue, locate: Locate): void {
    const { waiting } = queue;
    queue.waiting = [];
    queue.characters = 0;
    for (const pass of waiting) pass(locate);
  }

  /** Returns a text with its places translated. Never rejects (APS2). */
  async mapped(version: string, text: string): Promise<string> {
    if (!hasPlaces(text)) return text;
    return located(text, await this.#locate(version).catch(() => asIs));
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
