/**
 * A source's link to one of its owners: what it knows of that owner, and what it has sent to it.
 *
 * Stages: asking how far the ward reaches (a message that takes nothing for granted) → streaming from there → broken
 * (the link went, or nothing was acknowledged for long) → asking …
 *
 * L1  While streaming, `sentUpTo` is what was sent, and `#dirty` names every pending row past it.
 * L2  What was sent is given the time that it takes over the narrowest line: sending it again sooner would never end.
 * L3  An owner that is full is sent nothing before what is pending here fits.
 * L4  An owner that may hold a row which the root has by now is told so: else it would hold it, and its word of what it
 *     recovered of this site would wait for that row (recovery.ts Y6), for as long as nothing is written here.
 */
import type { Core, Mark } from "../core/core.ts";
import type { Key } from "../model/key.ts";
import {
  WARD_BYTES_MAX,
  WARD_FULL_MS,
  WARD_FULL_MS_MAX,
  WARD_IDLE_MS,
  WARD_LINE_BYTES_PER_MS,
  WARD_LINE_BYTES_UNDER_WAY,
  WARD_PROBE_MS,
  WARD_RESEND_MS,
} from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Position, Row } from "../model/row.ts";
import { ROW_BYTES, wireBytes } from "../wire/wire_row.ts";
import type { Warded, WardMessage, WardRefusal } from "../wire/ward_message.ts";

/** Reports whether more is pending at a site than one owner takes for it. */
export function isTooMuch({ pending, reach, depth }: Core): boolean {
  const { rows, bytes } = pending.measure(reach[0]?.top ?? 0, depth);
  return bytes + rows * ROW_BYTES > WARD_BYTES_MAX;
}

export class OwnerLink {
  readonly site: SiteId;
  /** Position up to which the owner's disk has the ward. */
  acked: Position = 0;
  /** The newest configuration that the owner knows to be in effect. */
  settled = 0;
  refused: WardRefusal = "none";
  /** Least configuration under which the owner takes anything (source.ts G6). */
  least = 0;
  isStreaming = false;
  sentUpTo: Position = 0;
  /**
   * Position up to which the owner may hold rows, apart from those of which it was told that the root has them (L4).
   */
  #heldUpTo: Position = 0;
  #saidAtRoot: Position = 0;
  readonly #core: Core;
  readonly #dirty = new Set<Key>();
  #isSending = false;
  #connection = 0;
  #sentMs = -Infinity;
  /** Time at which the oldest message that is not acknowledged was sent. */
  #waitingMs = Infinity;
  /** Bytes of rows that were sent and are not acknowledged. */
  #waitingBytes = 0;
  /** Time at which the owner was found to have no room; it is left alone for `#fullForMs` from then. */
  #fullMs: number | null = null;
  #fullForMs = WARD_FULL_MS;
  #sentConfig = 0;
  #sentSettled = false;

  constructor(site: SiteId, core: Core) {
    this.site = site;
    this.#core = core;
  }

  /** Reason why the owner takes nothing; null where it does. */
  get why(): string | null {
    if (this.refused !== "none" && this.refused !== "gap") return this.refused;
    return this.isStreaming ? null : "no answer";
  }

  /** Notes that a row is pending. */
  note(key: Key): void {
    if (this.isStreaming) this.#dirty.add(key); // L1
  }

  /** @param wanted somebody waits for rows that were not sent yet. */
  isDue(
    mark: Pick<Mark, "head" | "reach">,
    under: { config: number; settled: boolean },
    wanted: boolean,
  ): boolean {
    const now = this.#core.steady.nowMs();
    if (this.#isSending) return false;
    if (this.isStreaming && now - this.#waitingMs > this.#patienceMs) this.broken();
    if (this.#isFull(now)) return false;
    if (!this.isStreaming) return now - this.#sentMs >= WARD_PROBE_MS;
    if (this.#dirty.size > 0 || (wanted && mark.head > this.sentUpTo)) return true;
    if (under.config !== this.#sentConfig || under.settled !== this.#sentSettled) return true;
    const isNews = mark.head > this.sentUpTo || this.#mayDrop(mark.reach[0]?.[0] ?? 0);
    return isNews && now - this.#sentMs >= WARD_IDLE_MS;
  }

  /** Reports whether the root has rows that the owner may hold and was not told of (L4). */
  #mayDrop(atRoot: Position): boolean {
    return this.#saidAtRoot < this.#heldUpTo && this.#saidAtRoot < atRoot;
  }

  /** Milliseconds after which what was sent, and not acknowledged, counts as lost (L2). */
  get #patienceMs(): number {
    return WARD_RESEND_MS + Math.min(this.#waitingBytes, WARD_LINE_BYTES_UNDER_WAY) / WARD_LINE_BYTES_PER_MS;
  }

  /** Reports whether the owner is full, as far as is known (L3). */
  #isFull(now: number): boolean {
    if (this.#fullMs === null || now - this.#fullMs < this.#fullForMs) return this.#fullMs !== null;
    this.#fullMs = isTooMuch(this.#core) ? now : null;
    return this.#fullMs !== null;
  }

  /** Reads the rows to send, as committed; null: one of them is damaged here (damage.ts G2). */
  async rows(): Promise<Row[] | null> {
    if (!this.isStreaming) return [];
    const keys = [...this.#dirty];
    this.#dirty.clear();
    const rows = await this.#core.rows.committed(keys);
    if (this.#core.damage.holdsBack(keys)) {
      for (const key of keys) this.#dirty.add(key);
      return null;
    }
    // A row that came from above meanwhile is one that the root has, or that the owners of the site it came from will
    // have.
    return rows.filter((row) => row.known >= this.#core.depth).sort((a, b) => a.position - b.position);
  }

  async send(messages: readonly WardMessage[], sent: () => void): Promise<void> {
    const connection = this.#connection;
    const [first] = messages;
    if (first === undefined) return;
    this.#sentMs = this.#core.steady.nowMs();
    this.#waitingMs = Math.min(this.#waitingMs, this.#sentMs);
    for (const { rows } of messages) {
      for (const row of rows) {
        this.#waitingBytes += wireBytes(row);
        this.#heldUpTo = Math.max(this.#heldUpTo, row.position);
      }
    }
    this.#saidAtRoot = first.reach[0] ?? 0;
    this.#sentConfig = first.config;
    this.#sentSettled = first.settled;
    if (this.isStreaming) {
      this.sentUpTo = first.head;
      this.#isSending = true;
    }
    for (const message of messages) {
      await this.#core.send(this.site, message);
      if (messages.length > 1) await this.#core.ports.clock.turn();
      if (connection !== this.#connection) return;
    }
    this.#isSending = false;
    // All messages but those that the link holds have arrived.
    if (messages.length > 1) this.#waitingMs = this.#core.steady.nowMs();
    sent();
  }

  /** Takes an answer in; true where the owner may have more than was known. */
  heard({ refused, position, config, settled }: Warded): boolean {
    // The refused message followed on one that the owner had no room for.
    if (refused === "gap" && this.#fullMs !== null) return false;
    this.refused = refused;
    if (refused === "gap") {
      // The owner may have lost its disk.
      this.settled = 0;
      this.#stream(position);
      return true;
    }
    if (refused === "full") {
      // The owner has room enough for this ward, and may have none for all that it holds.
      if (this.#fullMs === null) this.#fullForMs = Math.min(2 * this.#fullForMs, WARD_FULL_MS_MAX);
      this.#fullMs = this.#core.steady.nowMs();
    }
    if (refused === "older") this.least = Math.max(this.least, config + 1);
    if (refused !== "none") {
      this.broken();
      return false;
    }
    if (!this.isStreaming) this.#stream(position);
    if (position > this.acked) this.#fullForMs = WARD_FULL_MS;
    this.acked = Math.max(this.acked, position);
    if (settled) this.settled = Math.max(this.settled, config);
    if (this.acked >= this.sentUpTo) this.#waitForNothing();
    else this.#waitingMs = this.#core.steady.nowMs();
    return true;
  }

  /** Streams what comes after the position that the owner's ward reaches. */
  #stream(position: Position): void {
    this.acked = this.sentUpTo = this.#heldUpTo = position;
    this.#saidAtRoot = 0;
    this.isStreaming = true;
    this.#isSending = false;
    this.#connection++;
    this.#waitForNothing();
    this.#sentConfig = 0;
    this.#dirty.clear();
    // L1
    for (const entry of this.#core.pending.after(position, this.#core.depth)) this.#dirty.add(entry.key);
  }

  /** Asks the owner at once: it can be reached. */
  connected(): void {
    this.broken();
    this.#sentMs = -Infinity;
    this.#fullMs = null;
    this.#fullForMs = WARD_FULL_MS;
  }

  /** Ends the streaming: what was sent may not arrive. */
  broken(): void {
    this.isStreaming = false;
    this.#isSending = false;
    this.#connection++;
    this.#waitForNothing();
  }

  #waitForNothing(): void {
    this.#waitingMs = Infinity;
    this.#waitingBytes = 0;
  }
}
