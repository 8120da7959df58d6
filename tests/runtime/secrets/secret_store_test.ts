/** Secrets at the root and at the sites below, over rows in memory. */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { type DeclaredSecrets, SecretStore, SecretTable } from "../../../runtime/secrets/mod.ts";
import { MemorySystem } from "../deploy/memory_system.ts";
import { ringOf } from "../deploy/memory_secrets.ts";

const VALUE = "the-value-of-a-secret";

async function setUp(ring = ringOf("the secret of this cluster")) {
  const system = new MemorySystem();
  const declared = new Map<string, DeclaredSecrets>();
  const notes: unknown[] = [];
  const services = {
    system,
    ring,
    note: (event: string, detail: unknown) => void notes.push([event, detail]),
  };
  const open = (withRing = ring) =>
    SecretStore.open({
      ...services,
      ring: withRing,
      declared: (app) => declared.get(app) ?? null,
      nowMs: () => 1_000,
    });
  const store = await open();
  const root = await SecretTable.open({ ...services, isRoot: true });
  const below = await SecretTable.open({ ...services, isRoot: false });
  const set = (app: string, name: string, value: string) =>
    store.set(app, name, ring.seal({ app, name }, value), "command");
  const rows = async () => ({
    everywhere: (await system.list(prefixRange(packKey(["s", "secret"])))).length,
    root: (await system.list(prefixRange(packKey(["r"])))).length,
  });
  /** What isolates of the app get, when both tables have seen all. */
  const seen = async (app: string) => {
    await Promise.all([root.refresh(), below.refresh()]);
    const declares = declared.get(app) ?? {};
    return { root: root.values(app, declares), below: below.values(app, declares) };
  };
  const close = () => [root, below].forEach((table) => table.close());
  return { system, declared, notes, store, open, root, below, set, rows, seen, close };
}

Deno.test("a secret reaches every site, unless its app keeps it at the root", async () => {
  const { declared, set, rows, seen, store, close } = await setUp();
  declared.set("shop", { KEY: {}, PEPPER: { at: "root" } });
  const done = await set("shop", "KEY", VALUE);
  const common = { ok: true, changed: true, declared: true };
  assert.deepEqual(done, { ...common, stamp: "00000000000001000001", tier: "everywhere", redacted: true });
  const pepper = await set("shop", "PEPPER", "salt");
  assert.ok(pepper.ok);
  assert.deepEqual({ ...pepper, stamp: "" }, {
    ok: true,
    stamp: "",
    changed: true,
    tier: "root",
    declared: true,
    redacted: false,
  });
  assert.deepEqual(await rows(), { everywhere: 1, root: 1 });
  assert.deepEqual(await seen("shop"), { root: { KEY: VALUE, PEPPER: "salt" }, below: { KEY: VALUE } });
  assert.deepEqual(await seen("other"), { root: {}, below: {} });
  assert.equal((await set("shop", "KEY", VALUE) as { changed: boolean }).changed, false);
  assert.deepEqual((await store.list("shop"))?.map(({ name, tier, setMs }) => [name, tier, setMs]), [
    ["KEY", "everywhere", 1_000],
    ["PEPPER", "root", 1_000],
  ]);
  assert.equal((await store.delete("shop", "KEY")).ok, true);
  assert.deepEqual(await seen("shop"), { root: { PEPPER: "salt" }, below: {} });
  assert.equal((await store.delete("shop", "KEY")).ok, false);
  close();
});

Deno.test("a value waits at the root for a declaration, and follows it (W2)", async () => {
  const { declared, set, rows, seen, store, close } = await setUp();
  const early = await set("shop", "KEY", VALUE);
  assert.deepEqual([early.ok && early.declared, early.ok && early.tier], [null, "root"]);
  assert.deepEqual(await rows(), { everywhere: 0, root: 1 });
  // Before the version that declares it goes live.
  await store.place("shop", { KEY: {} }, { widen: true });
  assert.deepEqual(await rows(), { everywhere: 1, root: 0 });
  declared.set("shop", { KEY: {} });
  assert.deepEqual(await seen("shop"), { root: { KEY: VALUE }, below: { KEY: VALUE } });
  // A version that keeps it at the root: at once for its own isolates, and the row once the other is gone.
  declared.set("shop", { KEY: { at: "root" } });
  assert.deepEqual(await seen("shop"), { root: { KEY: VALUE }, below: {} });
  await store.place("shop", { KEY: { at: "root" } }, { widen: true });
  assert.deepEqual(await rows(), { everywhere: 1, root: 0 });
  await store.place("shop", { KEY: { at: "root" } }, { widen: false });
  assert.deepEqual(await rows(), { everywhere: 0, root: 1 });
  assert.deepEqual(await seen("shop"), { root: { KEY: VALUE }, below: {} });
  await store.deleteApp("shop");
  assert.deepEqual(await rows(), { everywhere: 0, root: 0 });
  close();
});

Deno.test("what can't be a secret is refused, and is in no message (W3)", async (t) => {
  const { set, store, close } = await setUp();
  const cases: [says: string, app: string, name: string, value: string, message: RegExp][] = [
    ["an app's name that is none", "Shop", "KEY", VALUE, /"Shop" is no app's name/],
    ["a name that is none", "shop", "a b", VALUE, /"a b" is no secret's name/],
    ["no value", "shop", "KEY", "", /can't be empty/],
    ["too long a value", "shop", "KEY", VALUE.repeat(1_000), /at most 16384 bytes, not 21000/],
  ];
  for (const [says, app, name, value, message] of cases) {
    await t.step(says, async () => {
      const refused = await set(app, name, value);
      assert(!refused.ok);
      assert.match(refused.message, message);
      assert(!refused.message.includes(VALUE));
    });
  }
  await t.step("a value sealed for another name", async () => {
    const sealed = ringOf("the secret of this cluster").seal({ app: "shop", name: "OTHER" }, VALUE);
    const refused = await store.set("shop", "KEY", sealed, "command");
    assert(!refused.ok && /altered, or sealed for another/.test(refused.message));
  });
  await t.step("more than an app may have", async () => {
    for (let i = 0; i < 100; i++) assert.equal((await set("shop", `KEY_${i}`, VALUE)).ok, true);
    const refused = await set("shop", "KEY_100", VALUE);
    assert(!refused.ok && refused.code === "limit_value");
    assert.equal((await set("shop", "KEY_99", "another value")).ok, true);
  });
  close();
});

Deno.test("a new cluster secret seals every value anew, and the old one can go (secret_table.ts V1)", async () => {
  const old = ringOf("the old secret of this cluster");
  const { declared, set, open, notes, system, store, close } = await setUp(old);
  declared.set("shop", { KEY: {} });
  await set("shop", "KEY", VALUE);
  await set("shop", "PEPPER", VALUE);
  const both = ringOf("the new secret of this cluster", "the old secret of this cluster");
  await open(both);
  await open(both);
  const resealed = notes.filter((note) => JSON.stringify(note).includes("resealed"));
  assert.deepEqual(resealed, [["secrets_resealed", { secrets: 2 }]], "once is enough");
  const fresh = ringOf("the new secret of this cluster");
  const table = await SecretTable.open({ system, ring: fresh, isRoot: true, note: () => {} });
  assert.deepEqual(table.values("shop", { KEY: {}, PEPPER: {} }), { KEY: VALUE, PEPPER: VALUE });
  assert.deepEqual(
    table.values("shop", { PEPPER: {} }),
    { PEPPER: VALUE },
    "what is declared, and nothing else",
  );
  table.close();
  assert.deepEqual((await store.list("shop"))?.map(({ readable }) => readable), [false, false]);
  close();
});

Deno.test("a table tells who listens of each app that has changed, and redacts what was before (V2)", async () => {
  const { declared, set, root, store, close } = await setUp();
  declared.set("shop", { KEY: {} });
  const told: string[] = [];
  root.onChange((app) => void told.push(app));
  await set("shop", "KEY", VALUE);
  await root.refresh();
  await set("cafe", "KEY", "another value");
  await root.refresh();
  await set("shop", "KEY", "a newer value");
  await root.refresh();
  assert.deepEqual(told, ["shop", "cafe", "shop"]);
  const text = `${VALUE}, then a newer value`;
  assert.equal(root.redact("shop", text), "[secret KEY], then [secret KEY]");
  assert.equal(root.redact("cafe", text), text);
  await store.delete("shop", "KEY");
  await root.refresh();
  assert.equal(root.redact("shop", text), "[secret KEY], then [secret KEY]");
  close();
});

Deno.test("no row has a value in it that can be read", async () => {
  const { declared, set, system, close } = await setUp();
  declared.set("shop", { KEY: {} });
  await set("shop", "KEY", VALUE);
  for (const row of system.rows.values()) {
    assert(!new TextDecoder().decode(row.value ?? new Uint8Array()).includes(VALUE));
    assert(!row.key.includes(VALUE));
  }
  close();
});
