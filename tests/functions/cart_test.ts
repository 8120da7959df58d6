/** The cart example's carts and shelves, without sites: what they decide. */
import assert from "node:assert/strict";
import app from "../../examples/cart/app.ts";
import { articleOf } from "../../examples/cart/articles.ts";
import { type Answer, Cart, type Contents, Shelf } from "../../examples/cart/sessions.ts";
import { readManifest } from "../../functions/manifest.ts";
import { SESSION_SLOT, type SessionPort, type SessionSlot } from "../../functions/class/session_slot.ts";

const slots = globalThis as { [SESSION_SLOT]?: SessionSlot };

/** A shop in this process: shelves, orders and timers, with nothing lost. */
function open() {
  const shelves = new Map<string, Shelf>();
  const orders: unknown[] = [];
  const timers = new Map<string, number>();
  const ended: string[] = [];
  const env = {
    vars: { FORGET_MS: "1000" },
    sessions: {
      shelf: {
        get: (id: string) => {
          const found = shelves.get(id) ?? made(() => new Shelf(), id);
          shelves.set(id, found);
          return found;
        },
      },
    },
    tables: { orders: { put: (order: unknown) => Promise.resolve(orders.push(order)) } },
  };
  function made<T>(make: () => T, id: string): T {
    const port: SessionPort = {
      id,
      env,
      attached: () => [],
      readCache: (_, load) => Promise.resolve(load()),
      setTimer: (name, ms) => void timers.set(name, ms),
      clearTimer: (name) => void timers.delete(name),
      end: () => void ended.push(id),
    };
    const before = slots[SESSION_SLOT];
    slots[SESSION_SLOT] = { making: port };
    try {
      return make();
    } finally {
      if (before === undefined) delete slots[SESSION_SLOT];
      else slots[SESSION_SLOT] = before;
    }
  }
  const cart = made(() => new Cart(), "ada");
  const left = (article: string) => env.sessions.shelf.get(article).left();
  return { cart, left, orders, timers, ended };
}

function done(answer: Answer): Contents {
  assert.ok(answer.ok, JSON.stringify(answer));
  return answer.contents;
}

const problem = (answer: Answer) => answer.ok ? undefined : answer.problem;

Deno.test("a cart takes what its shelf has, and gives back what is taken out", async () => {
  const { cart, left, timers } = open();
  const stock = articleOf("beans")?.stock ?? 0;
  done(await cart.add("beans", 3, null));
  done(await cart.add("mug", 1, null));
  const { lines, cents } = done(await cart.add("beans", -1, null));
  assert.deepEqual(lines, [
    { article: "beans", count: 2, cents: 2580 },
    { article: "mug", count: 1, cents: 900 },
  ]);
  assert.deepEqual([cents, left("beans"), timers.get("forgotten")], [3480, stock - 2, 1000]);
  assert.deepEqual(done(await cart.add("beans", -9, null)).lines.length, 1, "no more than there is");
  assert.equal(left("beans"), stock);
});

Deno.test("a cart takes nothing that is not there", async () => {
  const { cart, left } = open();
  done(await cart.add("grinder", 4, null));
  assert.equal(problem(await cart.add("grinder", 2, null)), "there are only 1 grinder");
  assert.deepEqual([cart.show().lines[0]?.count, left("grinder")], [4, 1]);
});

Deno.test("a request that is sent again with its key is answered as it was", async () => {
  const { cart, left } = open();
  const first = await cart.add("kettle", 2, "k1");
  done(await cart.add("kettle", 1, "k2"));
  assert.deepEqual(await cart.add("kettle", 2, "k1"), first);
  assert.equal(left("kettle"), 12 - 3);
  for (let n = 0; n < 60; n++) done(await cart.add("filters", 1, `n${n}`));
  assert.equal(cart.answers.size, 50, "keys do not pile up");
});

Deno.test("a cart is ordered once, and closed then", async () => {
  const { cart, orders } = open();
  assert.equal(problem(await cart.checkout()), "the cart is empty");
  done(await cart.add("mug", 2, null));
  const { order } = done(await cart.checkout());
  assert.equal(done(await cart.checkout()).order, order);
  assert.equal(orders.length, 1);
  assert.match(problem(await cart.add("mug", 1, null)) ?? "", /ordered already/);
});

Deno.test("a cart that is forgotten gives back what was not ordered", async () => {
  for (const isOrdered of [false, true]) {
    const { cart, left, ended } = open();
    done(await cart.add("beans", 5, null));
    if (isOrdered) done(await cart.checkout());
    await cart.onTimer("forgotten");
    assert.deepEqual([left("beans"), ended], [isOrdered ? 35 : 40, ["ada"]]);
  }
});

Deno.test("the cart can be deployed, and names its stateful sessions", () => {
  assert.deepEqual(Object.keys(readManifest(app).sessions ?? {}), ["cart", "shelf"]);
});
