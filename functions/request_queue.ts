/**
 * A queue of one request: what is sent to it is checked here, and stored by the site.
 *
 * RQ1 A send that throws an error of this file has stored nothing.
 * RQ2 All that is sent with one call goes to the site at once.
 */
import type { MessageToSend, Queue, QueueDefinition, SendOptions } from "./queue.ts";
import {
  DELAY_MS_MAX,
  PRODUCER_ID_BYTES_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  SEND_BYTES_MAX,
  SEND_MESSAGES_MAX,
} from "./queues/limits.ts";
import { validate } from "./schema.ts";
import { encodeValue } from "./values/value.ts";
import { AppError, codeOf } from "./vocabulary/errors.ts";
import type { QueueSender, SentMessage } from "./vocabulary/queue_sender.ts";

const utf8 = new TextEncoder();

/** See the file's header. */
export class RequestQueue implements Queue<QueueDefinition["schema"]> {
  readonly #name: string;
  readonly #schema: QueueDefinition["schema"];
  readonly #sender: QueueSender;

  constructor(name: string, { schema }: Pick<QueueDefinition, "schema">, sender: QueueSender) {
    this.#name = name;
    this.#schema = schema;
    this.#sender = sender;
  }

  async send(body: unknown, options: SendOptions = {}): Promise<void> {
    await this.#sender.send(this.#name, [await this.prepared(body, options)]);
  }

  async sendBatch(messages: Iterable<MessageToSend>): Promise<void> {
    const all = [...messages];
    if (all.length > SEND_MESSAGES_MAX) {
      throw this.#tooLong(
        `${all.length} messages at once`,
        `up to ${SEND_MESSAGES_MAX} may be sent together`,
      );
    }
    const prepared = await Promise.all(all.map(({ body, ...options }) => this.prepared(body, options)));
    const bytes = prepared.reduce((sum, { body }) => sum + body.length, 0);
    if (bytes > SEND_BYTES_MAX) {
      throw this.#tooLong(`${bytes} bytes at once`, `up to ${SEND_BYTES_MAX} may be sent together`);
    }
    if (prepared.length > 0) await this.#sender.send(this.#name, prepared);
  }

  get name(): string {
    return this.#name;
  }

  /** Checks a message, and returns it as it is sent. @throws AppError `message_invalid`, `limit_message`. */
  async prepared(given: unknown, options: SendOptions): Promise<SentMessage> {
    const { id, delayMs, ttlMs } = options;
    if (id !== undefined && !isId(id)) {
      throw this.#invalid(`the id ${shown(id)}`, `1 to ${PRODUCER_ID_BYTES_MAX} bytes of UTF-8`);
    }
    if (delayMs !== undefined && !isTime(delayMs, 0)) {
      throw this.#invalid(`delayMs ${shown(delayMs)}`, `0 to ${DELAY_MS_MAX}`);
    }
    if (ttlMs !== undefined && !isTime(ttlMs, 1)) {
      throw this.#invalid(`ttlMs ${shown(ttlMs)}`, `1 to ${DELAY_MS_MAX}`);
    }
    return {
      body: this.#encoded(await this.#checked(given)),
      ...id === undefined ? {} : { id },
      ...delayMs === undefined ? {} : { delayMs },
      ...ttlMs === undefined ? {} : { ttlMs },
    };
  }

  async #checked(given: unknown): Promise<unknown> {
    try {
      return await validate(this.#schema, given, `a message to the queue ${this.#name}`);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "row_invalid") throw error;
      throw new AppError("message_invalid", error.message, { ...error.detail, queue: this.#name });
    }
  }

  #encoded(value: unknown): Uint8Array {
    let bytes: Uint8Array;
    try {
      bytes = encodeValue(value);
    } catch (error) {
      if (codeOf(error) !== "limit_value") throw error;
      throw this.#tooLong(
        "a message of more than 1 MiB",
        `up to ${QUEUE_MESSAGE_BYTES_MAX} bytes may be sent`,
      );
    }
    if (bytes.length <= QUEUE_MESSAGE_BYTES_MAX) return bytes;
    throw this.#tooLong(
      `a message of ${bytes.length} bytes`,
      `up to ${QUEUE_MESSAGE_BYTES_MAX} bytes may be sent`,
    );
  }

  #invalid(what: string, expected: string): AppError {
    return new AppError(
      "message_invalid",
      `cannot send to the queue ${this.#name} with ${what}: expected ${expected}`,
      { queue: this.#name },
    );
  }

  #tooLong(what: string, may: string): AppError {
    return new AppError("limit_message", `cannot send to the queue ${this.#name} ${what}: ${may}`, {
      queue: this.#name,
    });
  }
}

const isId = (id: unknown): boolean =>
  typeof id === "string" && id !== "" && id.isWellFormed() && utf8.encode(id).length <= PRODUCER_ID_BYTES_MAX;

const isTime = (ms: unknown, least: number): boolean =>
  typeof ms === "number" && ms >= least && ms <= DELAY_MS_MAX;

const shown = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : String(value).slice(0, 100);
