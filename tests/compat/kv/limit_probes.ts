/** Probes of watches, expiry, limits, and what stands beside them. */
import { rejection, thrown } from "../probes/probe.ts";
import type { KvProbes } from "./probes.ts";

const watching: KvProbes = {
  "watch": async ({ kv, at }) => {
    await kv.set(at("a"), 1);
    const reader = kv.watch([at("a"), at("b")]).getReader();
    const seen = [(await reader.read()).value?.map((entry) => entry.value)];
    await kv.set(at("b"), 2);
    seen.push((await reader.read()).value?.map((entry) => entry.value));
    await kv.delete(at("a"));
    seen.push((await reader.read()).value?.map((entry) => entry.value));
    await reader.cancel();
    return seen;
  },
  "watch of too many keys": ({ kv, at }) =>
    rejection(() => kv.watch(Array.from({ length: 11 }, (_, i) => at(i))).cancel()),
  "expireIn": async ({ kv, at }) => {
    await kv.set(at("a"), 1, { expireIn: 60_000 });
    await kv.atomic().set(at("b"), 2, { expireIn: 60_000 }).commit();
    return (await kv.getMany([at("a"), at("b")])).map((entry) => entry.value);
  },
  "expireIn below zero": ({ kv, at }) =>
    rejection(() => kv.set(at("a"), 1, { expireIn: -1 }).then(() => "stored")),
  "expireIn of half a millisecond": ({ kv, at }) =>
    rejection(() => kv.set(at("a"), 1, { expireIn: 0.5 }).then(() => "stored")),
  "what has expired is gone": async ({ kv, at }) => {
    await kv.set(at("a"), 1, { expireIn: 1 });
    for (let i = 0; i < 100 && (await kv.get(at("a"))).versionstamp !== null; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return await kv.get(at("a"));
  },
  "odd times of expireIn": ({ kv, at }) =>
    Promise.all(
      [NaN, Infinity, "5", null, {}, 5n, 0, 1e15, 1e17, Number.MAX_SAFE_INTEGER].map((expireIn) =>
        rejection(() => kv.set(at("a"), 1, { expireIn: expireIn as never }).then(() => "stored"))
      ),
    ),
  "expireIn of no number": ({ kv, at }) => rejection(() => kv.set(at("a"), 1, { expireIn: "x" as never })),
};

const limits: KvProbes = {
  "getMany of 10 keys": async ({ kv, at }) =>
    (await kv.getMany(Array.from({ length: 10 }, (_, i) => at(i)))).length,
  "getMany of 11 keys": ({ kv, at }) =>
    rejection(async () => (await kv.getMany(Array.from({ length: 11 }, (_, i) => at(i)))).length),
  "value of 65536 bytes": ({ kv, at }) =>
    rejection(() => kv.set(at("a"), new Uint8Array(65_536)).then(() => "stored")),
  "value of 65537 bytes": ({ kv, at }) =>
    rejection(() => kv.set(at("a"), new Uint8Array(65_537)).then(() => "stored")),
  "value of 2 MiB": ({ kv, at }) =>
    rejection(() => kv.set(at("a"), new Uint8Array(2_097_152)).then(() => "stored")),
  "100 checks": ({ kv, at }) => {
    const atomic = kv.atomic();
    for (let i = 0; i < 100; i++) atomic.check({ key: at(i), versionstamp: null });
    return rejection(() => atomic.commit().then(({ ok }) => ok));
  },
  "101 checks": ({ kv, at }) =>
    rejection(() => {
      const atomic = kv.atomic();
      for (let i = 0; i < 101; i++) atomic.check({ key: at(i), versionstamp: null });
      return atomic.commit().then(({ ok }) => ok);
    }),
  "1000 mutations": ({ kv, at }) => {
    const atomic = kv.atomic();
    for (let i = 0; i < 1000; i++) atomic.delete(at(i));
    return rejection(() => atomic.commit().then(({ ok }) => ok));
  },
  "1001 mutations": ({ kv, at }) =>
    rejection(() => {
      const atomic = kv.atomic();
      for (let i = 0; i < 1001; i++) atomic.delete(at(i));
      return atomic.commit().then(({ ok }) => ok);
    }),
  "900 KB in one operation": ({ kv, at }) =>
    rejection(() => {
      const atomic = kv.atomic();
      for (let i = 0; i < 15; i++) atomic.set(at(i), new Uint8Array(60_000));
      return atomic.commit().then(({ ok }) => ok);
    }),
  "5 MB in one operation": ({ kv, at }) =>
    rejection(() => {
      const atomic = kv.atomic();
      for (let i = 0; i < 84; i++) atomic.set(at(i), new Uint8Array(60_000));
      return atomic.commit().then(({ ok }) => ok);
    }),
};

/** Last: they close what they are given, or wait for what never comes. */
const beside: KvProbes = {
  "commitVersionstamp": ({ kv }) => thrown(() => typeof kv.commitVersionstamp()),
  "names": ({ kv }) => [
    Object.prototype.toString.call(kv),
    Object.prototype.toString.call(kv.atomic()),
    typeof kv[Symbol.dispose],
    thrown(() => new (Deno.Kv as unknown as new () => unknown)()),
    kv instanceof Deno.Kv,
    kv.atomic() instanceof Deno.AtomicOperation,
  ],
};

export const limitsAndRest: KvProbes = { ...watching, ...limits, ...beside };
