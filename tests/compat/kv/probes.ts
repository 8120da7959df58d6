/**
 * A program for `Deno.openKv()`, in the manner of Deno's own tests of it: each probe works in a key space of its
 * own and answers what it saw. tests/e2e/compat_test.ts runs it on Deno's KV and on an app's.
 */
import { type Probes, rejection } from "../probes/probe.ts";

/** What a probe works with. */
export interface KvScene {
  readonly kv: Deno.Kv;
  /** A key in the probe's own space. */
  readonly at: (...parts: Deno.KvKeyPart[]) => Deno.KvKey;
}

/** Probes by name. */
export type KvProbes = Readonly<Record<string, (scene: KvScene) => unknown>>;

/** The probes, each in its own space of a KV, as {@link runProbes} takes them. */
export function probesOn(kv: Deno.Kv, probes: KvProbes): Probes {
  return Object.fromEntries(
    Object.entries(probes).map(([name, probe]) => [
      name,
      async () => {
        const at = (...parts: Deno.KvKeyPart[]): Deno.KvKey => [name, ...parts];
        return await probe({ kv, at });
      },
    ]),
  );
}

/** Keys of a list, without the probe's own space. */
export async function keysOf(list: Deno.KvListIterator<unknown>): Promise<unknown[]> {
  const keys: unknown[] = [];
  for await (const { key } of list) keys.push(key.slice(1));
  return keys;
}

async function fill({ kv, at }: KvScene, ...names: Deno.KvKeyPart[][]): Promise<void> {
  for (const [i, name] of names.entries()) await kv.set(at(...name), i);
}

export const VALUES: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  booleans: () => [true, false],
  strings: () => ["", "a", "é😀", "\0", "x".repeat(1000), "\ud800"],
  numbers: () => [0, -0, 1.5, NaN, Infinity, -Infinity, Number.MAX_SAFE_INTEGER, 5e-324],
  bigints: () => [0n, -1n, 2n ** 200n],
  bytes: () => new Uint8Array([1, 2, 3]),
  buffers: () => [
    new ArrayBuffer(2),
    new Float64Array([1.5]),
    new BigInt64Array([-1n]),
    new DataView(new ArrayBuffer(1)),
  ],
  arrays: () => [[1, [2, [3]]], [1, , 3]],
  objects: () => ({ a: 1, b: { c: undefined, d: null }, __proto__: null }),
  dates: () => new Date(86_400_000),
  patterns: () => /a+/giu,
  maps: () => new Map<unknown, unknown>([["a", new Set([1, "b"])], [{ x: 1 }, 2]]),
  "boxed primitives": () => [new String("s"), new Number(1), new Boolean(false)],
  errors: () => {
    const error = new RangeError("m", { cause: "c" });
    error.stack = "stack";
    return error;
  },
  cycles: () => {
    const a: Record<string, unknown> = { name: "a" };
    a["self"] = a;
    return a;
  },
  "shared references": () => {
    const shared = { x: 1 };
    return [shared, shared];
  },
  "class instances": () =>
    new (class Point {
      x = 1;
    })(),
  KvU64: () => new Deno.KvU64(2n ** 64n - 1n),
};

const values: KvProbes = Object.fromEntries(
  Object.entries(VALUES).map(([what, make]) => [
    `value: ${what}`,
    async ({ kv, at }: KvScene) => {
      await kv.set(at("v"), make());
      return (await kv.get(at("v"))).value;
    },
  ]),
);

const REFUSED: Readonly<Record<string, () => unknown>> = {
  "a function": () => () => {},
  "a symbol": () => Symbol("s"),
  "a function inside": () => ({ f() {} }),
  "a shared buffer": () => new Uint8Array(new SharedArrayBuffer(1)),
  "a KvU64 inside": () => ({ n: new Deno.KvU64(1n) }),
  "a promise": () => Promise.resolve(1),
  "a blob": () => new Blob(["x"]),
  "an URL inside": () => ({ list: [new URL("http://localhost/")] }),
  "an object whose fields are private": () =>
    new (class Secret {
      readonly #inside = 1;
      read() {
        return this.#inside;
      }
    })(),
};

const refused: KvProbes = Object.fromEntries(
  Object.entries(REFUSED).map(([what, make]) => [
    `value refused: ${what}`,
    ({ kv, at }: KvScene) => rejection(() => kv.set(at("v"), make()).then(() => "stored")),
  ]),
);

const reading: KvProbes = {
  "get of nothing": ({ kv, at }) => kv.get(at("none")),
  "set and get": async ({ kv, at }) => [await kv.set(at("a"), 1), await kv.get(at("a"))],
  "set twice": async ({ kv, at }) => {
    const first = await kv.set(at("a"), 1);
    const second = await kv.set(at("a"), 2);
    return [
      first.versionstamp < second.versionstamp,
      (await kv.get(at("a"))).versionstamp === second.versionstamp,
    ];
  },
  "versionstamp": async ({ kv, at }) => /^[0-9a-f]{20}$/.test((await kv.set(at("a"), 1)).versionstamp),
  "delete": async ({ kv, at }) => {
    await kv.set(at("a"), 1);
    return [await kv.delete(at("a")), await kv.delete(at("never")), await kv.get(at("a"))];
  },
  "getMany": async ({ kv, at }) => {
    await fill({ kv, at }, ["a"], ["b"]);
    return [
      (await kv.getMany([at("b"), at("none"), at("a")])).map((entry) => entry.value),
      await kv.getMany([]),
    ];
  },
  "getMany of one key twice": async ({ kv, at }) => {
    await fill({ kv, at }, ["a"]);
    return (await kv.getMany([at("a"), at("a")])).map((entry) => entry.value);
  },
  "get with a consistency": async ({ kv, at }) => {
    await fill({ kv, at }, ["a"]);
    return (await kv.get(at("a"), { consistency: "eventual" })).value;
  },
  "get with an unknown consistency": ({ kv, at }) =>
    rejection(() => kv.get(at("a"), { consistency: "nope" as never })),
  "what is read is a copy": async ({ kv, at }) => {
    const value = { list: [1] };
    await kv.set(at("a"), value);
    value.list.push(2);
    const first = await kv.get<{ list: number[] }>(at("a"));
    first.value?.list.push(3);
    return (await kv.get(at("a"))).value;
  },
};

const keys: KvProbes = {
  "key types and their order": async (scene) => {
    await fill(
      scene,
      [true],
      [false],
      [1n],
      [-1n],
      [0],
      [-1.5],
      [1],
      [Infinity],
      [-Infinity],
      ["b"],
      ["a"],
      [""],
      ["a", "x"],
      ["a\0"],
      [new Uint8Array([1])],
      [new Uint8Array([])],
      [new Uint8Array([0])],
      [2n ** 63n],
      [-(2n ** 63n)],
      ["é"],
      [new Uint8Array([0, 255])],
      [-0],
      [NaN],
    );
    return await keysOf(scene.kv.list({ prefix: scene.at() }));
  },
  "keys of one look": async (scene) => {
    await fill(scene, ["1"], [1], [1n], [true], [new Uint8Array([49])]);
    return (await Promise.all(
      [["1"], [1], [1n], [true], [new Uint8Array([49])]].map((key) => scene.kv.get(scene.at(...key))),
    ))
      .map((entry) => entry.value);
  },
  "zero and minus zero": async ({ kv, at }) => {
    await kv.set(at(0), "zero");
    await kv.set(at(-0), "minus zero");
    return [(await kv.get(at(0))).value, (await kv.get(at(-0))).value];
  },
  "key with a large bigint": ({ kv, at }) => rejection(() => kv.set(at(2n ** 70n), 1).then(() => "stored")),
  "key with a lone surrogate": ({ kv, at }) => rejection(() => kv.set(at("\ud800"), 1).then(() => "stored")),
  "empty key, read": ({ kv }) => rejection(() => kv.get([])),
  "empty key": ({ kv }) =>
    Promise.all([
      rejection(() => kv.set([], 1)),
      rejection(() => kv.delete([])),
    ]),
  "key of a wrong part": ({ kv, at }) =>
    Promise.all(
      [undefined, null, {}, [], Symbol("s")].map((part) => rejection(() => kv.get(at(part as never)))),
    ),
  "key that is no array": ({ kv }) => rejection(() => kv.get("key" as never)),
  "key of 2048 bytes": ({ kv }) => rejection(() => kv.set(["x".repeat(2040)], 1).then(() => "stored")),
  "key that is too large": ({ kv }) => rejection(() => kv.set(["x".repeat(2050)], 1).then(() => "stored")),
  "key that is too large, read": ({ kv }) => rejection(() => kv.get(["x".repeat(2050)])),
};

export const basics: KvProbes = { ...values, ...refused, ...reading, ...keys };
