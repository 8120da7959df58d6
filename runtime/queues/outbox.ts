/**
 * The outbox of a site: messages to queues that functions have written in one step with rows, until the queues have them.
 * Each is a row of its own, written with the others: as safe as these, and gone if they are.
 *
 * A message's way: written → on the disks that its rows are to be on → stored by the site's queues → its row is deleted.
 *
 * OX1 A message is stored only when the rows that were written with it are on disk here, and at this site's owners.
 * OX2 A row is deleted only when its message is stored, or can never be: then that is told, and counted by nobody else.
 *     What a crash leaves is found at the next start, and tried until then.
 * OX3 A message has a name made of its row's key: stored again, it is the same message.
 * OX4 The rows of a site are the site's own to deal with. Those of a site that is dead, or no more in the tree, are the
 *     root's.
 * OX5 Of each app so many messages are on their way at once; others wait in their rows until half of these are stored.
 *     An app whose queue is full holds up no other app.
 * OX6 With a value of an app's KV goes a token of a session that has seen the row, and so all that its sender had
 *     written before, and in one step with it: who handles the value at another site has seen that, too.
 */
import type { QueuedMessage, SentMessage } from "../../functions/vocabulary/queue_sender.ts";
import { KV_QUEUE } from "../../functions/queues/kv_queue.ts";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import type { AttachedSession } from "../../store/api/api.ts";
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { type Key, KeyError, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import type { AppOutbox } from "../gateway/app_runner.ts";
import type { OutgoingMessages } from "../gateway/session_store.ts";
import type { QueueSends } from "./sends.ts";

/** Row of a message that waits. */
export interface OutboxRow {
  readonly key: Key;
  readonly value: Uint8Array;
}

export interface OutboxPorts {
  readonly site: string;
  /** Number that names this process among all of the site's. */
  readonly boot: string;
  readonly isRoot: boolean;
  /** The site's own session at the store. */
  readonly store: Pick<AttachedSession, "list" | "write" | "durable">;
  readonly sends: Pick<QueueSends, "storeOfSession">;
  /** Returns a token of a session that has seen a row here. */
  readonly tokenOf: (key: Key) => Promise<string>;
  /** Reports whether nobody deals with a site's rows: it is dead, or not in the tree. */
  readonly isLost: (site: string) => boolean;
  readonly nowMs: () => number;
  /** Calls back after `ms` milliseconds; returns what cancels that. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Reports a rare event, worth a line in the log. */
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** First part of the keys of all outboxes; the site, the app and a name follow. */
const OUTBOX = "q";
/** Time between two looks at what is left: rows whose owners were away, and at the root those of lost sites. */
const LOOK_MS = 10_000;
/** Pause after which a message is tried again, twice as long each time. */
const AGAIN_MS = 500, AGAIN_MS_MAX = 10_000;
/** Rows that one look reads at a time. */
const ROWS_AT_ONCE = 100;
/** Messages of an app that are on their way at once (OX5): each is held in memory. */
const UNDER_WAY_MAX = 256;
/** Codes after which no later attempt is better. */
const FOR_GOOD: ReadonlySet<string> = new Set(["queue_unknown", "message_invalid", "limit_message"]);

/** MessageOutbox of a site; see the file's header. */
export class MessageOutbox implements AppOutbox {
  readonly #ports: OutboxPorts;
  #next = 1;
  /** Keys of the rows whose messages are on their way, by the first part of their keys: site and app. */
  readonly #under = new Map<Key, Set<Key>>();
  /** First parts of the keys of rows that wait for others to be stored (OX5). */
  readonly #behind = new Set<Key>();
  #cancelLook: () => void = () => {};
  #isLooking = false;
  #isWanted = false;
  #isClosed = false;
  readonly #waits = new Set<() => void>();

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
  }

  /** Begins to deal with what is left of earlier processes. */
  begin(): void {
    void this.look();
  }

  /** Returns the rows of messages that an app sends now. */
  rows(app: string, messages: readonly QueuedMessage[]): OutboxRow[] {
    const { site, boot, nowMs } = this.#ports, sentMs = Math.max(0, Math.floor(nowMs()));
    return messages.map((message) => ({
      key: packKey([OUTBOX, site, app, `${boot}.${(this.#next++).toString(36)}`]),
      value: encodeOutboxValue(message, sentMs),
    }));
  }

  /** As the runners of apps use it (runtime/gateway/app_runner.ts). */
  outgoing(app: string, messages: readonly QueuedMessage[], durable: () => Promise<void>): OutgoingMessages {
    const rows = this.rows(app, messages);
    return {
      mutations: rows.map(({ key, value }) => ({ kind: "set", key, value })),
      written: () => this.written(rows, durable()),
    };
  }

  /** Takes rows that were written. @param durable resolves when they are where they are to be (OX1). */
  written(rows: readonly OutboxRow[], durable: Promise<void>): void {
    durable.then(() => rows.forEach((row) => void this.#send(row)), () => this.#lookSoon());
  }

  /** Deals with the rows that are there, and looks again after a while. */
  async look(): Promise<void> {
    this.#isWanted = true;
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    this.#isWanted = false;
    try {
      const { site, isRoot } = this.#ports;
      await this.#lookAt(isRoot ? [OUTBOX] : [OUTBOX, site]);
    } catch {
      // What can't be read now is read the next time.
    } finally {
      this.#isLooking = false;
      if (this.#isWanted) void this.look();
      else this.#lookSoon();
    }
  }

  #lookSoon(): void {
    this.#cancelLook();
    if (!this.#isClosed) this.#cancelLook = this.#ports.after(LOOK_MS, () => void this.look());
  }

  async #lookAt(prefix: readonly string[]): Promise<void> {
    const { store } = this.#ports;
    for (let range = prefixRange(packKey(prefix)), isMore = true; isMore && !this.#isClosed;) {
      const rows = await store.list(range, { limit: ROWS_AT_ONCE });
      await store.durable(); // OX1
      isMore = rows.length === ROWS_AT_ONCE;
      for (const { key, value } of rows) {
        range = { ...range, start: `${key}\0` as Key };
        if (value === null || !this.#isOurs(key) || this.#send({ key, value })) continue;
        range = { ...range, start: prefixRange(appOf(key)).end }; // the next app
        isMore = true;
        break;
      }
    }
  }

  /** OX4 */
  #isOurs(key: Key): boolean {
    const { site, isLost } = this.#ports, owner = ownerOf(key);
    return owner === site || (owner !== null && isLost(owner));
  }

  /** Begins with a message. Returns false where it is to wait in its row (OX5). */
  #send(row: OutboxRow): boolean {
    const app = appOf(row.key), under = this.#under.get(app) ?? new Set();
    if (under.has(row.key) || this.#isClosed) return true;
    if (under.size >= UNDER_WAY_MAX) {
      this.#behind.add(app);
      return false;
    }
    this.#under.set(app, under.add(row.key));
    void this.#stored(row).finally(() => {
      under.delete(row.key);
      if (under.size === 0) this.#under.delete(app);
      if (under.size <= UNDER_WAY_MAX / 2 && this.#behind.delete(app)) void this.look();
    });
    return true;
  }

  async #stored({ key, value }: OutboxRow): Promise<void> {
    const { sends, store, note, tokenOf } = this.#ports;
    for (let pauseMs = AGAIN_MS; !this.#isClosed; pauseMs = Math.min(2 * pauseMs, AGAIN_MS_MAX)) {
      try {
        const { app, sentMs, queue, message } = decodeOutbox(key, value);
        const seen = queue === KV_QUEUE ? await tokenOf(key) : ""; // OX6
        await sends.storeOfSession(app, { queue, message, key, place: 0, sentMs }, seen); // OX3
        break;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        const isLost = error instanceof CodecError || error instanceof KeyError ||
          FOR_GOOD.has(codeOf(error) ?? "");
        if (isLost || pauseMs === AGAIN_MS) note(isLost ? "outbox_left_out" : "outbox_waits", { why });
        if (isLost) break;
      }
      await this.#pause(pauseMs);
    }
    if (this.#isClosed) return;
    try {
      await store.write([{ kind: "delete", key }]); // OX2
    } catch {
      this.#lookSoon(); // its message is known by its name
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        this.#waits.delete(over);
        cancel();
        resolve();
      };
      const cancel = this.#ports.after(ms, over);
      this.#waits.add(over);
    });
  }

  /** Ends: what is left is found at the next start. */
  close(): void {
    this.#isClosed = true;
    this.#cancelLook();
    for (const over of [...this.#waits]) over();
  }
}

/** Returns the first part of a row's key: of all rows of an app at a site. */
const appOf = (key: Key): Key => packKey(unpackKey(key).slice(0, 3));

/** Returns the site whose a row is; null for a key of no such row. */
function ownerOf(key: Key): string | null {
  const [prefix, site, app, name] = unpackKey(key);
  const isRow = prefix === OUTBOX && [site, app, name].every((part) => typeof part === "string");
  return isRow ? site as string : null;
}

/** Version byte of the format, the only one so far. */
const FORM = 1;

function encodeOutboxValue({ queue, body, id = "", delayMs = 0, ttlMs = 0 }: QueuedMessage, sentMs: number) {
  const writer = new Writer(body.length + 64).byte(VALUE_TAG.bytes).byte(FORM);
  writer.text(queue).text(id).uint(Math.ceil(delayMs)).uint(Math.ceil(ttlMs)).uint(sentMs);
  return writer.bytes(body).done();
}

/** Reads a row. @throws CodecError, KeyError */
function decodeOutbox(key: Key, value: Uint8Array): {
  readonly app: string;
  readonly queue: string;
  readonly message: SentMessage;
  readonly sentMs: number;
} {
  const [, , app] = unpackKey(key), reader = new Reader(value);
  if (reader.byte() !== VALUE_TAG.bytes || reader.byte() !== FORM || typeof app !== "string") {
    throw new CodecError("a row of an outbox is of no known form");
  }
  const queue = reader.text(), id = reader.text(), delayMs = reader.uint(), ttlMs = reader.uint();
  const sentMs = reader.uint(), body = reader.bytes();
  reader.end();
  const message = {
    body,
    ...id === "" ? {} : { id },
    ...delayMs === 0 ? {} : { delayMs },
    ...ttlMs === 0 ? {} : { ttlMs },
  };
  return { app, queue, message, sentMs };
}
