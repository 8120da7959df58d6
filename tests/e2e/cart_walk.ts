/**
 * The walk of examples/cart/README.md: customers fill carts at three edges, and the site where all of that lives is killed
 * in the middle of it.
 *
 * W1  What a customer was answered is in the cart, and in it once, whichever site is asked, and with the home dead.
 * W2  Shelf, carts and orders have as many pieces as there were.
 * W3  A cart that is ordered is one order, also where it is ordered again, at another site.
 */
import { strict as assert } from "node:assert";
import { ask } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

interface Cart {
  readonly lines: readonly { readonly article: string; readonly count: number }[];
  readonly order: string | null;
}

const EDGES = ["edge-1", "edge-2", "edge-3"] as const;
/** Requests of a customer; the home dies while some are on their way. */
const PIECES = 12;

const at = (cluster: TestCluster, site: string, path: string) => `${cluster.url(site)}/cart/${path}`;
const countOf = ({ lines }: Cart, article: string): number =>
  lines.find((line) => line.article === article)?.count ?? 0;

/** Asks one site after the other until one answers, as somebody with a phone would; always with the same key. */
async function insist(cluster: TestCluster, path: string, init: RequestInit, first: number): Promise<Cart> {
  const found: { cart?: Cart } = {};
  let tries = first;
  await eventually(`${path} is answered`, async () => {
    const { status, text } = await ask(at(cluster, EDGES[tries++ % EDGES.length] ?? "", path), init);
    if (status >= 500) return false;
    assert.equal(status, 200, text);
    found.cart = JSON.parse(text) as Cart;
    return true;
  });
  assert.ok(found.cart);
  return found.cart;
}

const add = (
  cluster: TestCluster,
  cart: string,
  article: string,
  key: string,
  first: number,
): Promise<Cart> =>
  insist(cluster, `carts/${cart}/lines`, {
    method: "POST",
    headers: { "idempotency-key": key, "content-type": "application/json" },
    body: JSON.stringify({ article, count: 1 }),
  }, first);

const read = async <T>(cluster: TestCluster, site: string, path: string): Promise<T> => {
  const { status, text } = await ask(at(cluster, site, path));
  assert.equal(status, 200, `${site} ${path}: ${text}`);
  return JSON.parse(text) as T;
};

/** Walks the example over a cluster with f = 1 at its edges. */
export async function walkCart(cluster: TestCluster): Promise<void> {
  const { left: stock } = await read<{ left: number }>(cluster, "edge-1", "shelves/mug");
  const ann = await add(cluster, "ann", "mug", "first", 0); // both have their home at edge-1 now
  assert.equal(countOf(ann, "mug"), 1);
  const customer = async (cart: string, first: number) => {
    for (let n = 0; n < PIECES; n++) {
      const after = await add(cluster, cart, "mug", `${cart}-${n}`, first + n);
      assert.equal(countOf(after, "mug"), n + (cart === "ann" ? 2 : 1), `${cart}: ${n + 1} were answered`); // W1
    }
  };
  const shopping = Promise.all([customer("ann", 0), customer("bob", 1), customer("cho", 2)]);
  await eventually("some are in", async () => countOf(await read(cluster, "edge-2", "carts/ann"), "mug") > 3);
  await cluster.control("kill", "edge-1");
  await shopping;
  const carts = await Promise.all(
    ["ann", "bob", "cho"].map((cart) => insist(cluster, `carts/${cart}`, {}, 1)),
  );
  assert.deepEqual(carts.map((cart) => countOf(cart, "mug")), [PIECES + 1, PIECES, PIECES]); // W1
  // Sent again at another site, with the first home dead: answered as it was then.
  assert.equal(countOf(await add(cluster, "ann", "mug", "first", 2), "mug"), 1); // W1
  assert.equal((await read<{ left: number }>(cluster, "edge-2", "shelves/mug")).left, stock - 3 * PIECES - 1); // W2
  const order = await insist(cluster, "carts/ann/order", { method: "POST" }, 1);
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  const again = await insist(cluster, "carts/ann/order", { method: "POST" }, 0);
  assert.deepEqual([again.order, countOf(again, "mug")], [order.order, PIECES + 1]); // W3
  await eventually("every edge shows the one order", async () => {
    for (const site of EDGES) {
      const orders = await read<{ order: string; cart: string }[]>(cluster, site, "orders");
      assert.ok(orders.length <= 1, `${site} has ${orders.length} orders`); // W3
      if (orders[0]?.order !== order.order) return false;
    }
    return true;
  });
}
