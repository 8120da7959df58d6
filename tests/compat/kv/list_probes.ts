/** Probes of lists and atomic operations. */
import { rejection, thrown } from "../probes/probe.ts";
import { keysOf, type KvProbes, type KvScene } from "./probes.ts";

async function letters({ kv, at }: KvScene): Promise<void> {
  for (const name of ["a", "b", "c", "d", "e"]) await kv.set(at(name), name);
  await kv.set(at("a", 1), "a1");
  await kv.set(at("a", 2), "a2");
}

const listing: KvProbes = {
  "list by prefix": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    return [
      await keysOf(kv.list({ prefix: at() })),
      await keysOf(kv.list({ prefix: at("a") })),
      await keysOf(kv.list({ prefix: at("none") })),
    ];
  },
  "list entries": async (scene) => {
    await letters(scene);
    return await Array.fromAsync(scene.kv.list({ prefix: scene.at("a") }));
  },
  "list with bounds": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    return [
      await keysOf(kv.list({ prefix: at(), start: at("b") })),
      await keysOf(kv.list({ prefix: at(), end: at("c") })),
      await keysOf(kv.list({ start: at("a"), end: at("c") })),
      await keysOf(kv.list({ start: at("c"), end: at("c") })),
    ];
  },
  "list reversed": async (scene) => {
    await letters(scene);
    return await keysOf(scene.kv.list({ prefix: scene.at() }, { reverse: true }));
  },
  "list with a limit": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    return [
      await keysOf(kv.list({ prefix: at() }, { limit: 2 })),
      await keysOf(kv.list({ prefix: at() }, { limit: 2, reverse: true })),
      await keysOf(kv.list({ prefix: at() }, { limit: 100 })),
    ];
  },
  "list in batches": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    return [
      await keysOf(kv.list({ prefix: at() }, { batchSize: 2 })),
      await keysOf(kv.list({ prefix: at() }, { batchSize: 1, reverse: true, limit: 3 })),
    ];
  },
  "list with a consistency": async (scene) => {
    await letters(scene);
    return await keysOf(scene.kv.list({ prefix: scene.at() }, { consistency: "eventual" }));
  },
  "list by cursor": async (scene) => {
    await letters(scene);
    const pages: unknown[] = [];
    for (const reverse of [false, true]) {
      let cursor = "";
      do {
        const list = scene.kv.list({ prefix: scene.at() }, { limit: 3, cursor, reverse });
        pages.push(await keysOf(list));
        cursor = list.cursor;
      } while (cursor !== "");
    }
    return pages;
  },
  "list cursor while it goes": async (scene) => {
    await letters(scene);
    const list = scene.kv.list({ prefix: scene.at() });
    const before = thrown(() => list.cursor);
    await list.next();
    const rest = await keysOf(scene.kv.list({ prefix: scene.at() }, { cursor: list.cursor }));
    return [before, rest];
  },
  "list next by hand": async (scene) => {
    await letters(scene);
    const list = scene.kv.list({ prefix: scene.at("a") });
    return [
      (await list.next()).done,
      (await list.next()).done,
      await list.next(),
      await list.next(),
      list[Symbol.asyncIterator]() === list,
    ];
  },
  "list from a start outside": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at("a"), start: at("b") }))),
  "list to an end outside": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at("b"), end: at("a") }))),
  "list from a start that is the prefix": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at("a"), start: at("a") }))),
  "list to an end that is the prefix": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at("a"), end: at("a") }))),
  "list reversed by what is not true": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    const odd = [1, 0, "", "no", {}, null, undefined, NaN];
    return await Promise.all(
      odd.map((reverse) => keysOf(kv.list({ prefix: at() }, { reverse: reverse as never }))),
    );
  },
  "list with odd limits": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    const odd = [1.5, NaN, Infinity, -Infinity, "2", "x", null, 1e20];
    return await Promise.all(
      odd.map((limit) => rejection(() => keysOf(kv.list({ prefix: at() }, { limit: limit as never })))),
    );
  },
  "list with odd batch sizes": async (scene) => {
    await letters(scene);
    const { kv, at } = scene;
    const odd = [1.5, -1, NaN, Infinity, "5", null, undefined, 501, 1000];
    return await Promise.all(
      odd.map((batchSize) =>
        rejection(() => keysOf(kv.list({ prefix: at() }, { batchSize: batchSize as never })))
      ),
    );
  },
  "list with start after end": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ start: at("b"), end: at("a") }))),
  "list of nothing selected": ({ kv }) => rejection(() => keysOf(kv.list({} as never))),
  "list with three bounds": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at(), start: at("a"), end: at("b") } as never))),
  "list with a start alone": ({ kv, at }) => rejection(() => keysOf(kv.list({ start: at("a") } as never))),
  "list with limit 0": ({ kv, at }) => rejection(() => keysOf(kv.list({ prefix: at() }, { limit: 0 }))),
  "list with a negative limit": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at() }, { limit: -1 }))),
  "list with batchSize 0": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at() }, { batchSize: 0 }))),
  "list with a large batchSize": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at() }, { batchSize: 1001 }))),
  "list with limit 1000": ({ kv, at }) => keysOf(kv.list({ prefix: at() }, { limit: 1000 })),
  "list with limit 1001": ({ kv, at }) => rejection(() => keysOf(kv.list({ prefix: at() }, { limit: 1001 }))),
  "list with a bad cursor": ({ kv, at }) =>
    rejection(() => keysOf(kv.list({ prefix: at() }, { cursor: "!!" }))),
  "list of 250 rows": async ({ kv, at }) => {
    for (let from = 0; from < 250; from += 50) {
      const atomic = kv.atomic();
      for (let i = from; i < from + 50; i++) atomic.set(at(i), i);
      await atomic.commit();
    }
    const all = await Array.fromAsync(kv.list<number>({ prefix: at() }), (entry) => entry.value);
    return [all.length, all.every((value, i) => value === i)];
  },
};

const atomics: KvProbes = {
  "atomic commits": async ({ kv, at }) => {
    const result = await kv.atomic().set(at("a"), 1).set(at("b"), 2).delete(at("c")).commit();
    return [result, await kv.get(at("a")), await kv.get(at("b"))];
  },
  "atomic check of what is not there": async ({ kv, at }) => {
    const first = await kv.atomic().check({ key: at("a"), versionstamp: null }).set(at("a"), 1).commit();
    const second = await kv.atomic().check({ key: at("a"), versionstamp: null }).set(at("a"), 2).commit();
    return [first.ok, second, (await kv.get(at("a"))).value];
  },
  "atomic check of a version": async ({ kv, at }) => {
    await kv.set(at("a"), 1);
    const entry = await kv.get(at("a"));
    const first = await kv.atomic().check(entry).set(at("a"), 2).commit();
    return [
      first.ok,
      await kv.atomic().check(entry).set(at("a"), 3).set(at("b"), 1).commit(),
      await kv.get(at("b")),
    ];
  },
  "atomic check after a delete": async ({ kv, at }) => {
    const { versionstamp } = await kv.set(at("a"), 1);
    await kv.delete(at("a"));
    return [
      (await kv.atomic().check({ key: at("a"), versionstamp }).set(at("a"), 2).commit()).ok,
      (await kv.atomic().check({ key: at("a"), versionstamp: null }).set(at("a"), 3).commit()).ok,
    ];
  },
  "atomic of nothing": ({ kv }) => kv.atomic().commit(),
  "atomic of checks alone": ({ kv, at }) => kv.atomic().check({ key: at("a"), versionstamp: null }).commit(),
  "atomic, later of two changes": async ({ kv, at }) => {
    await kv.atomic().set(at("a"), 1).set(at("a"), 2).delete(at("b")).set(at("b"), 3).set(at("c"), 1).delete(
      at("c"),
    ).commit();
    return (await kv.getMany([at("a"), at("b"), at("c")])).map((entry) => entry.value);
  },
  "atomic mutate": async ({ kv, at }) => {
    await kv.atomic().mutate(
      { type: "set", key: at("a"), value: 1 },
      { type: "sum", key: at("n"), value: new Deno.KvU64(5n) },
      { type: "delete", key: at("b") },
    ).commit();
    return (await kv.getMany([at("a"), at("n")])).map((entry) => entry.value);
  },
  "atomic mutate of an unknown kind": ({ kv, at }) =>
    rejection(() => kv.atomic().mutate({ type: "nope", key: at("a") } as never).commit()),
  "sum": async ({ kv, at }) => {
    await kv.atomic().sum(at("n"), 10n).commit();
    await kv.atomic().sum(at("n"), 2n).commit();
    return (await kv.get(at("n"))).value;
  },
  "sum wraps": async ({ kv, at }) => {
    await kv.set(at("n"), new Deno.KvU64(2n ** 64n - 1n));
    await kv.atomic().sum(at("n"), 2n).commit();
    return (await kv.get(at("n"))).value;
  },
  "sum twice in one operation": async ({ kv, at }) => {
    await kv.atomic().sum(at("n"), 1n).sum(at("n"), 2n).commit();
    return (await kv.get(at("n"))).value;
  },
  "min and max": async ({ kv, at }) => {
    await kv.atomic().min(at("min"), 5n).max(at("max"), 5n).commit();
    await kv.atomic().min(at("min"), 3n).max(at("max"), 3n).commit();
    await kv.atomic().min(at("min"), 4n).max(at("max"), 9n).commit();
    return (await kv.getMany([at("min"), at("max")])).map((entry) => entry.value);
  },
  "sum on another type": async ({ kv, at }) => {
    await kv.set(at("n"), "text");
    return await rejection(() => kv.atomic().sum(at("n"), 1n).commit());
  },
  "sum after a delete": async ({ kv, at }) => {
    await kv.atomic().set(at("n"), new Deno.KvU64(5n)).set(at("t"), "text").commit();
    await kv.atomic().delete(at("n")).sum(at("n"), 3n).delete(at("t")).sum(at("t"), 4n).commit();
    return (await kv.getMany([at("n"), at("t")])).map((entry) => entry.value);
  },
  "sum before a delete": async ({ kv, at }) => {
    await kv.set(at("n"), new Deno.KvU64(5n));
    await kv.atomic().sum(at("n"), 3n).delete(at("n")).commit();
    return (await kv.get(at("n"))).value;
  },
  "sum around a set": async ({ kv, at }) => {
    await kv.atomic().sum(at("n"), 3n).set(at("n"), new Deno.KvU64(10n)).sum(at("n"), 2n).commit();
    return (await kv.get(at("n"))).value;
  },
  "sum after a set of another type, with all of its operation": async ({ kv, at }) => {
    await kv.set(at("n"), new Deno.KvU64(5n));
    const text = await rejection(() => kv.atomic().set(at("m"), 1).set(at("n"), 7).sum(at("n"), 2n).commit());
    return [text, (await kv.getMany([at("m"), at("n")])).map((entry) => entry.value)];
  },
  "max and min in one operation": async ({ kv, at }) => {
    await kv.atomic().max(at("n"), 3n).min(at("n"), 2n).commit();
    return (await kv.get(at("n"))).value;
  },
  "sum of a number": ({ kv, at }) => rejection(() => kv.atomic().sum(at("n"), 1 as never).commit()),
  "sum of text": ({ kv, at }) => rejection(() => kv.atomic().sum(at("n"), "1" as never).commit()),
  "sum below zero": ({ kv, at }) => rejection(() => kv.atomic().sum(at("n"), -1n).commit()),
  "check of no versionstamp": ({ kv, at }) =>
    rejection(() => kv.atomic().check({ key: at("a"), versionstamp: "nope" }).commit()),
  "KvU64": () => [
    new Deno.KvU64(1n).value,
    String(new Deno.KvU64(7n)),
    Object.isFrozen(new Deno.KvU64(1n)),
    new Deno.KvU64(1n),
    thrown(() => new Deno.KvU64(-1n)),
    thrown(() => new Deno.KvU64(2n ** 64n)),
    thrown(() => new Deno.KvU64(1 as never)),
  ],
};

export const lists: KvProbes = { ...listing, ...atomics };
