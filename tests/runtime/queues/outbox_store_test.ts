/** A write of an app with a message, in a real store, up to the queues, over a restart of its site (runtime/queues/outbox.ts). */
import { strict as assert } from "node:assert";
import type { QueuedMessage } from "../../../functions/vocabulary/queue_sender.ts";
import { appSpace, RequestStore } from "../../../runtime/gateway/session_store.ts";
import { outboxOf } from "../../../runtime/gateway/app_runner.ts";
import { MessageOutbox } from "../../../runtime/queues/outbox.ts";
import { SystemClock, SystemRandom } from "../../../runtime/site/system_ports.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { packKey } from "../../../store/model/key.ts";
import { openReplica } from "../../../store/replica.ts";
import { Disks } from "../../functions/sessions/serve/memory_host.ts";

const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 3, atomicBytes: 1_000 };
const key = packKey(["kv", "row"]);
const message = (text: string): QueuedMessage => ({ queue: "jobs", body: encodeValue(text) });

async function started(disks: Disks, boot: string, refuses: { readonly isFull: boolean }) {
  const clock = new SystemClock(), stored: string[] = [];
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    ...{ clock, random: new SystemRandom(), storage: disks.rows, network: { send: () => Promise.resolve() } },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  await replica.ready;
  const outbox = new MessageOutbox({
    ...{
      site: "cloud",
      boot,
      isRoot: true,
      store: await replica.attach(null),
      isLost: () => false,
      tokenOf: () => Promise.resolve(""),
    },
    sends: {
      storeOfSession: (_, { key, message: { body } }) => {
        if (refuses.isFull) return Promise.reject(Object.assign(new Error("full"), { code: "queue_full" }));
        stored.push(`${key} ${new TextDecoder().decode(body.subarray(1))}`);
        return Promise.resolve();
      },
    },
    nowMs: Date.now,
    after: (ms, run) => clock.after(ms, run),
    note: () => {},
  });
  const session = await replica.attach(null);
  const store = new RequestStore(session, {
    ...{ space: appSpace("shop"), limits: LIMITS, nowMs: Date.now, use: { storeMs: 0, step: () => {} } },
    outbox: outboxOf({ outbox }, { app: "shop" } as never, session),
  });
  const close = async () => {
    outbox.close();
    await replica.close();
  };
  return { outbox, store, stored, close };
}

const soon = async (is: () => boolean) => {
  for (let i = 0; i < 500 && !is(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(is());
};

Deno.test("a message is written with its rows or not at all, and what is left at a restart is sent then, as it would have been", async () => {
  const disks = new Disks(), refuses = { isFull: true };
  const first = await started(disks, "one", refuses);
  const set = { kind: "set", key, value: encodeValue(1) } as const;
  const wrong = [{ key, versionstamp: "0".repeat(20) }];
  assert.equal((await first.store.commit(wrong, [set], [message("never")])).ok, false);
  assert.equal((await first.store.commit([], [set], [message("left")])).ok, true);
  const tooMany = Array.from({ length: 3 }, () => message("x"));
  await assert.rejects(first.store.commit([], [set], tooMany), { code: "limit_atomic" });
  await assert.rejects(first.store.commit([], [], [message("x".repeat(1_000))]), { code: "limit_atomic" });
  await first.close();
  assert.deepEqual(first.stored, []);
  refuses.isFull = false;
  const second = await started(disks, "two", refuses);
  second.outbox.begin();
  await soon(() => second.stored.length > 0);
  assert.equal((await second.store.commit([], [], [message("alone")])).ok, true);
  await soon(() => second.stored.length > 1);
  assert.match(second.stored.join(), /cloud.*shop.*one\.\S* left,.*cloud.*shop.*two\.\S* alone$/s);
  await second.close();
  const third = await started(disks, "three", refuses);
  third.outbox.begin();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(third.stored, [], "their rows are gone");
  await third.close();
});

Deno.test("where a site has no outbox a message is refused, and its rows with it", async () => {
  const { outbox: _, ...scene } = await started(new Disks(), "one", { isFull: false });
  const bare = new RequestStore({} as never, {
    ...{ space: appSpace("shop"), limits: LIMITS, nowMs: Date.now, use: { storeMs: 0, step: () => {} } },
  });
  await assert.rejects(bare.commit([], [], [message("x")]), { code: "not_available" });
  await scene.close();
});
