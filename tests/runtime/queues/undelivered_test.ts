/** Values that could not be delivered, on their way to their keys (runtime/queues/undelivered.ts). */
import assert from "node:assert/strict";
import type { MessageEnvelope } from "../../../functions/queues/envelope.ts";
import { encodeKeys, encodeKvDelivery } from "../../../functions/queues/kv_queue.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { UndeliveredValues } from "../../../runtime/queues/undelivered.ts";
import type { StoreMutation } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";

const dead = (value: Uint8Array, keys: readonly string[]): { readonly envelope: MessageEnvelope } => ({
  envelope: {
    ...{ id: "", sentMs: 1, trace: "", backoffMs: null, format: "value", body: value },
    undelivered: encodeKvDelivery({
      seen: "token",
      undelivered: encodeKeys(keys.map((key) => packKey([key]))),
    }),
  },
});

/** A store that says what was done with it. */
function storing(fails: "write" | "durable" | null = null) {
  const said: (readonly StoreMutation[] | "durable")[] = [];
  const store = {
    write: (mutations: readonly StoreMutation[]) => {
      said.push(mutations);
      return fails === "write" ? Promise.reject(new Error("no")) : Promise.resolve({ ok: true } as never);
    },
    durable: () => {
      said.push("durable");
      return fails === "durable" ? Promise.reject(new Error("no")) : Promise.resolve();
    },
  };
  return { said, values: new UndeliveredValues(store) };
}

Deno.test("a value is written to its keys in its app's KV, and is there when that is on disk (UV1)", async () => {
  const { said, values } = storing(), value = encodeValue({ a: 1 });
  assert.equal(await values.write("shop/kv.queue", dead(value, [])), false);
  assert.deepEqual(said, []);
  assert.equal(await values.write("shop/kv.queue", dead(value, ["x", "y"])), true);
  const written = ["x", "y"].map((key) => ({ kind: "set", key: packKey(["a", "shop", "kv", key]), value }));
  assert.deepEqual(said, [written, "durable"]);
  for (const fails of ["write", "durable"] as const) {
    await assert.rejects(storing(fails).values.write("shop/kv.queue", dead(value, ["x"])), /no/);
  }
});

Deno.test("a large value goes to many keys in several writes", async () => {
  const { said, values } = storing(), value = encodeValue(new Uint8Array(1_000_000));
  await values.write("shop/kv.queue", dead(value, ["a", "b", "c", "d", "e", "f"]));
  assert.deepEqual(said.map((one) => one === "durable" ? one : one.length), [4, 2, "durable"]);
});
