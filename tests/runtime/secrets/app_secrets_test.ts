/** The root's secrets follow the apps that serve: rollouts, and apps that go. */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import type { AppTable, LiveApp } from "../../../runtime/deploy/mod.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import type { DeclaredSecrets } from "../../../runtime/secrets/mod.ts";
import { openSecretStore } from "../../../runtime/site/app_secrets.ts";
import { ringOf } from "../deploy/memory_secrets.ts";
import { MemorySystem } from "../deploy/memory_system.ts";

/** Lets promises that are settled go on, and those that wait for them. */
async function settle(): Promise<void> {
  for (let i = 0; i < 200; i++) await Promise.resolve();
}

async function setUp() {
  const system = new MemorySystem();
  const ring = ringOf("the secret of this cluster");
  let live: LiveApp[] = [];
  const listeners: (() => void)[] = [];
  const apps = {
    get: (name: string) => live.find((app) => app.name === name),
    list: () => live,
    onChange: (listener: () => void) => void listeners.push(listener),
  } as unknown as AppTable;
  const notes: string[] = [];
  const store = await openSecretStore(
    { system, ring, nowMs: () => 1, note: (event) => void notes.push(event) },
    apps,
  );
  const version = (name: string, secrets: DeclaredSecrets) => ({ version: name, manifest: { secrets } });
  const serve = async (...serving: [name: string, current: DeclaredSecrets, next?: DeclaredSecrets][]) => {
    live = serving.map(([name, current, next]) => ({
      name,
      current: version(JSON.stringify(current), current),
      ...(next === undefined ? {} : { rollout: { next: version(JSON.stringify(next), next), weight: 1 } }),
    })) as unknown as LiveApp[];
    for (const listener of listeners) listener();
    await settle();
  };
  const set = (app: string, name: string) =>
    store.set(app, name, ring.seal({ app, name }, "the-value"), "command");
  const names = async (lead: string[]) =>
    (await system.list(prefixRange(packKey(lead)))).map((row) => row.key).length;
  const rows = async () => [await names(["s", "secret"]), await names(["r"])];
  return { system, serve, set, rows, store, notes };
}

Deno.test("a secret is let out while a version that serves lets it out (A1)", async () => {
  const { serve, set, rows } = await setUp();
  await serve(["shop", {}]);
  await set("shop", "KEY");
  assert.deepEqual(await rows(), [0, 1]);
  await serve(["shop", {}, { KEY: {} }]);
  assert.deepEqual(await rows(), [1, 0], "a rollout");
  await serve(["shop", { KEY: {} }, { KEY: { at: "root" } }]);
  assert.deepEqual(await rows(), [1, 0], "of one that would keep it");
  await serve(["shop", { KEY: { at: "root" } }]);
  assert.deepEqual(await rows(), [0, 1], "alone");
});

Deno.test("the secrets of an app go with it, and those of one that was never there stay (A2)", async () => {
  const { system, serve, set, rows, notes } = await setUp();
  await set("early", "KEY");
  await serve(["shop", { KEY: {} }], ["cafe", { KEY: {} }]);
  await set("shop", "KEY");
  await set("shop", "OTHER");
  await set("cafe", "KEY");
  assert.deepEqual(await rows(), [2, 2]);
  await system.write([{
    kind: "set",
    key: packKey(["s", "app", "shop"]),
    value: encodeSystem({ name: "shop", versions: [], current: null, deleted: true }),
  }]);
  await serve(["cafe", { KEY: {} }]);
  assert.deepEqual(await rows(), [1, 1]);
  await serve();
  assert.deepEqual(await rows(), [0, 1], "its row is gone altogether");
  assert.deepEqual(notes.filter((note) => note === "secrets_unplaced"), []);
});
