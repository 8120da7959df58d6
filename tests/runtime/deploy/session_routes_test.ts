/** What the admin paths of stateful sessions say to a slip in a name. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import type { AdminBindings, AdminServices } from "../../../runtime/admin/services.ts";
import { sessionRoutes } from "../../../runtime/admin/sessions.ts";
import type { StatefulAdmin } from "../../../runtime/admin/stateful_admin.ts";
import type { HomeRow } from "../../../functions/sessions/home/mod.ts";
import { MemorySystem } from "./memory_system.ts";

const row: HomeRow = {
  name: { app: "shop", class: "cart", id: ".." },
  ...{ site: "cloud", epoch: 1, config: 1, owners: [], version: "v1", ended: false, movesTo: "" },
};

/** A root with one app of one class, and one stateful session, whose id is not a segment of an address. */
function setUp() {
  const shop = { current: { manifest: { sessions: { cart: {} } } } };
  const services = {
    ...{ site: "cloud", system: new MemorySystem() },
    apps: { get: (app: string) => app === "shop" ? shop : undefined },
  } as unknown as AdminServices;
  const stateful = {
    rows: ({ app, after }) => Promise.resolve(app === "shop" && after?.id !== ".." ? [row] : []),
    parked: () => null,
    look: () => null,
  } as Partial<StatefulAdmin> as StatefulAdmin;
  const app = new Hono<{ Bindings: AdminBindings }>();
  sessionRoutes(app, services, stateful);
  return async (path: string, method = "GET") => {
    const answer = await app.fetch(new Request(`http://cloud${path}`, { method }), { role: "admin" });
    const { code, detail } = await answer.json();
    return [answer.status, code, detail];
  };
}

Deno.test("a slip in the name of an app, or of a class, of stateful sessions is told as such", async () => {
  const ask = setUp();
  const noApp = [404, "app_unknown", 'no app is called "shp"'];
  const noClass = [404, "not_found", 'shop has no class "card"; it has cart'];
  assert.deepEqual(await ask("/sessions?app=shp"), noApp);
  assert.deepEqual(await ask("/sessions/shp/cart/ann"), noApp);
  assert.deepEqual(await ask("/sessions/shp/cart/ann/log"), noApp);
  assert.deepEqual(await ask("/sessions/shp/cart/ann/reset", "POST"), noApp);
  assert.deepEqual(await ask("/sessions?app=shop&class=card"), noClass);
  assert.deepEqual(await ask("/sessions/shop/card/ann", "DELETE"), noClass);
  const none = [404, "not_found", 'shop has no stateful session cart "ann"'];
  assert.deepEqual(await ask("/sessions/shop/cart/ann"), none);
  assert.equal((await ask("/sessions?app=shop&class=cart"))[0], 200);
});

Deno.test("a stateful session whose id no address can have as it is is found all the same", async () => {
  const ask = setUp();
  assert.equal((await ask("/sessions/shop/cart/~.."))[0], 200);
  assert.equal((await ask("/sessions/shop/cart/~~.."))[0], 404);
});
