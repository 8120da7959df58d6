/**
 * Values of KVs' queues that could not be delivered, on their way to the keys that their senders gave.
 *
 * UV1 A message is told to be dealt with only when its value is on disk at all of its keys, here and at this site's
 *     owners: until then it is kept, and tried again.
 */
import { KV_SPACE } from "../../functions/key_space.ts";
import type { StoredMessage } from "../../functions/queues/broker.ts";
import { decodeKvDelivery } from "../../functions/queues/kv_queue.ts";
import type { AttachedSession, StoreMutation } from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import { appSpace } from "../gateway/session_store.ts";
import { namesOf } from "./declared_queues.ts";

/** Bytes of values that one write has: each of a few keys has a copy of the value. */
const WRITE_BYTES_MAX = 4 << 20;

/** See the file's header. */
export class UndeliveredValues {
  readonly #store: Pick<AttachedSession, "write" | "durable">;

  constructor(store: Pick<AttachedSession, "write" | "durable">) {
    this.#store = store;
  }

  /** Writes a message's value to its keys. @returns false: it has none. @throws where it can't be written now (UV1). */
  async write(topic: string, { envelope }: Pick<StoredMessage, "envelope">): Promise<boolean> {
    const { undelivered, body: value } = envelope;
    const space = appSpace(namesOf(topic).app).app + KV_SPACE;
    const { keys } = decodeKvDelivery(undelivered);
    if (keys.length === 0) return false;
    const atOnce = Math.max(1, Math.floor(WRITE_BYTES_MAX / (value.length + 1)));
    for (let at = 0; at < keys.length; at += atOnce) {
      await this.#store.write(
        keys.slice(at, at + atOnce).map((key): StoreMutation => {
          return { kind: "set", key: space + key as Key, value };
        }),
      );
    }
    await this.#store.durable();
    return true;
  }
}
