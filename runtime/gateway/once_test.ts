import { strict as assert } from "node:assert";
import { encodeCall } from "../../functions/calls/call.ts";
import { AppError } from "../../functions/vocabulary/errors.ts";
import { KEPT_NAMES_MAX, OnceCalls, onceKeyOf, type OnceScope } from "./once.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

const rpc = (method: string, args = "x") =>
  encodeCall({ kind: "rpc", method, args: new TextEncoder().encode(args) });
const SCOPE: OnceScope = {
  app: "shop",
  session: new Uint8Array([1, 2, 3]),
  key: "k-1",
  method: "POST",
  target: "/orders?now",
  authorization: null,
};
const SHOP = { manifest: { sessions: { cart: {} } } };
const ANN = { class: "cart", id: "ann" };

Deno.test("a request that is sent again names its calls as before, whatever their arguments are (ON1)", () => {
  const first = new OnceCalls(SCOPE), again = new OnceCalls({ ...SCOPE });
  assert.equal(first.next(ANN, rpc("add", "at 12:01")), again.next(ANN, rpc("add", "at 12:02")));
  const second = first.next(ANN, rpc("add"));
  assert.equal(second, again.next(ANN, rpc("add")));
  const third = first.next(ANN, rpc("add"));
  assert.notEqual(second, third);
});

Deno.test("calls that the second time come in another order keep their names (ON1)", () => {
  const first = new OnceCalls(SCOPE), again = new OnceCalls(SCOPE);
  const [add, look] = [first.next(ANN, rpc("add")), first.next({ class: "cart", id: "bob" }, rpc("look"))];
  assert.equal(again.next({ class: "cart", id: "bob" }, rpc("look")), look);
  assert.equal(again.next(ANN, rpc("add")), add);
});

Deno.test("whatever else differs, so does the name (ON1, ON2)", () => {
  const others: Partial<OnceScope>[] = [
    {},
    { app: "shop2" },
    { session: new Uint8Array([1, 2, 4]) },
    { session: null },
    { key: "k-2" },
    { method: "PUT" },
    { target: "/orders" },
    { authorization: "Bearer of-ann" },
    { authorization: "Bearer of-bob" },
    { session: null, authorization: "Bearer of-ann" },
    { session: null, authorization: "Bearer of-bob" },
  ];
  const calls: [typeof ANN, Uint8Array][] = [
    [ANN, rpc("add")],
    [{ class: "cart", id: "bob" }, rpc("add")],
    [{ class: "card", id: "ann" }, rpc("add")],
    [ANN, rpc("take")],
    [ANN, encodeCall({ kind: "fetch", method: "add", url: "http://a/b", headers: [], body: null })],
    [ANN, encodeCall({ kind: "fetch", method: "add", url: "http://a/c", headers: [], body: null })],
  ];
  const names = others.flatMap((other) =>
    calls.map(([target, call]) => new OnceCalls({ ...SCOPE, ...other }).next(target, call))
  );
  assert.equal(new Set(names).size, others.length * calls.length);
  for (const name of names) assert.match(name, /^once\.[0-9a-f]{64}\.0$/);
});

Deno.test("a key is 1 to 255 visible characters, given once", () => {
  const headers = (key: string): [string, string][] => [["accept", "*/*"], ["idempotency-key", key]];
  assert.equal(onceKeyOf([["accept", "*/*"]], SHOP), null);
  for (const key of ["a", '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "x".repeat(255)]) {
    assert.equal(onceKeyOf(headers(key), SHOP), key);
  }
  assert.equal(onceKeyOf(headers("as it likes"), { manifest: { sessions: {} } }), null);
  for (const key of ["", "x".repeat(256), "a b", "a, b", "ä", "a\tb", "\u007f"]) {
    assert.throws(
      () => onceKeyOf(headers(key), SHOP),
      (error) => error instanceof Problem && error.code === "idempotency_key_invalid",
    );
  }
});

Deno.test("ids are made as docs/protocol/homes.md says: hashed by another program", () => {
  const names: [string | null, string][] = [
    [null, "324cf412bb80cf449c64bf9867f65def67366dfdc94c53c4fd4a922cd96b8ab1"],
    ["Bearer of-ann", "f89d8108b267d02916f38b062b7450afd1896e5d900d26f8c4926bfc68ddea09"],
  ];
  for (const [authorization, hash] of names) {
    const calls = new OnceCalls({ ...SCOPE, authorization });
    assert.deepEqual(
      [calls.next(ANN, rpc("add")), calls.next(ANN, rpc("add"))],
      [`once.${hash}.0`, `once.${hash}.1`],
    );
  }
});

Deno.test("a request that calls without end is refused new names, and what it has goes on (ON4)", () => {
  const calls = new OnceCalls(SCOPE);
  for (let i = 0; i < KEPT_NAMES_MAX; i++) calls.next({ class: "cart", id: `${i}` }, rpc("add"));
  assert.throws(
    () => calls.next({ class: "cart", id: "one more" }, rpc("add")),
    (error) => error instanceof AppError && error.code === "limit_calls",
  );
  assert.match(calls.next({ class: "cart", id: "7" }, rpc("add")), /\.1$/);
});
