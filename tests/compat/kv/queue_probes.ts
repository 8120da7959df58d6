/**
 * Probes of `enqueue` and `listenQueue`. The program's listeners (app.ts) write down what they are given, by the probe
 * that sent it, and fail where a message asks for that.
 */
import { rejection, thrown } from "../probes/probe.ts";
import { type KvProbes, type KvScene, VALUES } from "./probes.ts";

/** Message of a probe. */
interface Sent {
  readonly probe: string;
  readonly value?: unknown;
  /** Deliveries that fail; all where it is left out and `does` is "throw". */
  readonly fails?: number;
  /** How they fail. */
  readonly how?: "throws" | "rejects";
}

/** Delivery of a message, as a listener wrote it down. */
interface Seen {
  readonly value: unknown;
  readonly atMs: number;
  readonly listener: string;
}

/** What a message without a probe's name was given, by the order of its sending. */
const PLAIN = "plain";

/** Returns a listener that writes down what it is given. */
export const listenerOn = (kv: Deno.Kv, listener: string) => (message: unknown): Promise<void> => {
  const sent = typeof message === "object" && message !== null && "probe" in message ? message as Sent : null;
  const seen: Seen = { value: sent === null ? message : sent.value, atMs: Date.now(), listener };
  const { fails = 0, how } = sent ?? {};
  const note = async () => {
    const { probe } = sent ?? { probe: PLAIN };
    await kv.set([probe, "seen", crypto.randomUUID()], seen);
    const times = await Array.fromAsync(kv.list({ prefix: [probe, "seen"] }));
    if (times.length <= fails) throw new Error("on purpose");
  };
  if (how === "throws") {
    // Nothing is written down before it has thrown.
    void kv.set([sent?.probe ?? PLAIN, "seen", crypto.randomUUID()], seen);
    throw new Error("on purpose");
  }
  return note();
};

const ALWAYS = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Deliveries of a probe's messages so far, in the order of their times. */
async function seen(kv: Deno.Kv, probe: string): Promise<Seen[]> {
  const found = await Array.fromAsync(kv.list<Seen>({ prefix: [probe, "seen"] }), ({ value }) => value);
  return found.sort((a, b) => a.atMs - b.atMs);
}

/** Waits for so many deliveries, and a while for more. */
async function delivered(kv: Deno.Kv, probe: string, count: number, moreMs = 0): Promise<Seen[]> {
  for (let i = 0; i < 300 && (await seen(kv, probe)).length < count; i++) await pause(10);
  await pause(moreMs);
  return await seen(kv, probe);
}

/** Sends a value, and answers what arrived. */
const through = (probe: string, value: unknown) => async ({ kv }: KvScene): Promise<unknown> => {
  await kv.enqueue({ probe, value });
  return (await delivered(kv, probe, 1)).map(({ value }) => value);
};

const values: KvProbes = Object.fromEntries(
  Object.entries(VALUES).map(([what, make]) => {
    const name = `through the queue: ${what}`;
    return [name, (scene: KvScene) => through(name, make())(scene)];
  }),
);

const plain: KvProbes = {
  "through the queue as they are": async ({ kv }) => {
    const all = ["text", 7, undefined, null, true, new Uint8Array([1, 2]), 5n, [1], new Map([["a", 1]])];
    for (const value of all) await kv.enqueue(value);
    const found = await delivered(kv, PLAIN, all.length, 100);
    return found.map(({ value }) => Deno.inspect(value)).sort();
  },
};

const delivery: KvProbes = {
  "enqueue": async ({ kv }) => {
    const { ok, versionstamp } = await kv.enqueue({ probe: "enqueue" });
    return [ok, versionstamp.length, (await delivered(kv, "enqueue", 1, 100)).length];
  },
  "a row is as old as what was enqueued after it": async ({ kv, at }) => {
    const { versionstamp } = await kv.set(at("a"), 1);
    const later = await kv.enqueue({ probe: "older" });
    return later.versionstamp > versionstamp;
  },
  "delay": async ({ kv }) => {
    const sentMs = Date.now();
    await kv.enqueue({ probe: "delay", value: "later" }, { delay: 600 });
    await kv.enqueue({ probe: "delay", value: "now" });
    const [first, second] = await delivered(kv, "delay", 2);
    return [first?.value, second?.value, (second?.atMs ?? 0) - sentMs >= 600];
  },
  "delay of half a millisecond": async ({ kv }) => {
    await kv.enqueue({ probe: "half" }, { delay: 0.5 });
    return (await delivered(kv, "half", 1)).length;
  },
  "atomic enqueue": async ({ kv, at }) => {
    const row = await kv.get(at("row"));
    const done = await kv.atomic().check(row).set(at("row"), 1).enqueue({ probe: "atomic" })
      .enqueue({ probe: "atomic" }, { delay: 50 }).commit();
    return [done.ok, (await kv.get(at("row"))).value, (await delivered(kv, "atomic", 2, 100)).length];
  },
  "atomic enqueue where a check does not hold": async ({ kv, at }) => {
    await kv.set(at("row"), 1);
    const refused = await kv.atomic().check({ key: at("row"), versionstamp: null }).set(at("row"), 2)
      .enqueue({ probe: "never", value: "refused" }).commit();
    await kv.enqueue({ probe: "never", value: "after it" });
    const found = await delivered(kv, "never", 1, 300);
    return [refused, (await kv.get(at("row"))).value, found.map(({ value }) => value)];
  },
  "an operation that is not committed sends nothing": async ({ kv }) => {
    kv.atomic().enqueue({ probe: "uncommitted" });
    await pause(200);
    return (await seen(kv, "uncommitted")).length;
  },
  "many at once": async ({ kv }) => {
    await Promise.all(Array.from({ length: 40 }, (_, i) => kv.enqueue({ probe: "many", value: i })));
    const found = await delivered(kv, "many", 40, 100);
    return [found.length, new Set(found.map(({ value }) => value)).size];
  },
};

const retries: KvProbes = {
  "a handler that fails twice": async ({ kv }) => {
    await kv.enqueue({ probe: "twice", fails: 2 });
    const found = await delivered(kv, "twice", 3, 200);
    const gaps = found.slice(1).map(({ atMs }, i) => atMs - (found[i]?.atMs ?? 0));
    return [found.length, (gaps[0] ?? 0) >= 90, (gaps[1] ?? 0) >= 900];
  },
  "backoffSchedule of two pauses": async ({ kv }) => {
    await kv.enqueue({ probe: "thrice", fails: ALWAYS }, { backoffSchedule: [20, 200] });
    const found = await delivered(kv, "thrice", 3, 500);
    return [found.length, (found[2]?.atMs ?? 0) - (found[1]?.atMs ?? 0) >= 190];
  },
  "backoffSchedule of none": async ({ kv }) => {
    await kv.enqueue({ probe: "once", fails: ALWAYS }, { backoffSchedule: [] });
    return (await delivered(kv, "once", 1, 500)).length;
  },
  "a handler that throws at once": async ({ kv, at }) => {
    const options = { backoffSchedule: [10], keysIfUndelivered: [at("lost")] };
    await kv.enqueue({ probe: "throws", how: "throws", value: 1 }, options);
    const count = (await delivered(kv, "throws", 2, 500)).length;
    return [count, (await kv.get(at("lost"))).value];
  },
  "keysIfUndelivered": async ({ kv, at }) => {
    const keysIfUndelivered = [at("lost", "a"), at("lost", 2n), at("lost", new Uint8Array([1]))];
    await kv.set(at("lost", "a"), "before");
    await kv.enqueue({ probe: "lost", fails: ALWAYS, value: new Date(0) }, {
      backoffSchedule: [10],
      keysIfUndelivered,
    });
    await delivered(kv, "lost", 2, 500);
    return await Array.fromAsync(kv.list({ prefix: at("lost") }), ({ key, value }) => [key, value]);
  },
  "keysIfUndelivered of what is delivered in the end": async ({ kv, at }) => {
    await kv.enqueue({ probe: "found", fails: 1 }, {
      backoffSchedule: [10],
      keysIfUndelivered: [at("lost")],
    });
    const found = await delivered(kv, "found", 2, 300);
    return [found.length, (await kv.get(at("lost"))).value];
  },
  "keysIfUndelivered of an atomic operation": async ({ kv, at }) => {
    await kv.atomic().enqueue({ probe: "lost too", fails: ALWAYS }, {
      backoffSchedule: [],
      keysIfUndelivered: Array.from({ length: 11 }, (_, i) => at("lost", i)),
    }).commit();
    await delivered(kv, "lost too", 1, 500);
    return (await Array.fromAsync(kv.list({ prefix: at("lost") }))).length;
  },
};

/** Far enough ahead that nobody is given it here. */
const FAR = { delay: 20 * 86_400_000 };
const keys = (count: number): Deno.KvKey[] => Array.from({ length: count }, (_, i) => ["lost", i]);

/** Options that both take or refuse in the same words. */
const OPTIONS: Readonly<Record<string, unknown>> = {
  "none": null,
  "delay of null": { delay: null },
  "delay below zero": { delay: -1 },
  "delay that is no number": { delay: NaN },
  "delay of 30 days": { delay: 30 * 86_400_000 },
  "delay of more than 30 days": { delay: 30 * 86_400_000 + 1 },
  "delay without an end": { delay: Infinity },
  "six pauses": { ...FAR, backoffSchedule: [1, 1, 1, 1, 1, 1] },
  "a pause of an hour": { ...FAR, backoffSchedule: [3_600_000] },
  "a pause of more than an hour": { ...FAR, backoffSchedule: [1, 3_600_001] },
  "a pause below zero": { ...FAR, backoffSchedule: [-1] },
  "a pause that is no number": { ...FAR, backoffSchedule: [1, NaN] },
  "a pause of half a millisecond": { ...FAR, backoffSchedule: [0.5] },
  "no keys": { ...FAR, keysIfUndelivered: [] },
  "100 keys": { ...FAR, keysIfUndelivered: keys(100) },
  "a key of a wrong part": { ...FAR, keysIfUndelivered: [[{}]] },
  "an empty key": { ...FAR, keysIfUndelivered: [[]] },
  "a key that is too large": { ...FAR, keysIfUndelivered: [["x".repeat(3_000)]] },
  "a key that is no array": { ...FAR, keysIfUndelivered: ["a"] },
  "delay of a text": { delay: "5" },
  "pauses of null": { backoffSchedule: null },
};

const options: KvProbes = Object.fromEntries(
  Object.entries(OPTIONS).map(([what, given]) => [
    `enqueue with ${what}`,
    async ({ kv }: KvScene) => {
      const alone = await rejection(() => kv.enqueue("message", given as never).then(({ ok }) => ok));
      const atomic = await rejection(() =>
        kv.atomic().enqueue("message", given as never).commit().then(({ ok }) => ok)
      );
      return alone === atomic ? alone : [alone, atomic];
    },
  ]),
);

const bounds: KvProbes = {
  "enqueue of a function": ({ kv }) => rejection(() => kv.enqueue(() => {})),
  "atomic enqueue of a function": ({ kv }) => thrown(() => void kv.atomic().enqueue(() => {})),
  "atomic enqueue throws before it is committed": ({ kv }) =>
    thrown(() => void kv.atomic().enqueue(1, { delay: -1 })),
  "enqueue of a shared buffer": ({ kv }) =>
    rejection(() => kv.enqueue(new Uint8Array(new SharedArrayBuffer(1)), FAR).then(({ ok }) => ok)),
  "enqueue of 65000 bytes": ({ kv }) =>
    rejection(() => kv.enqueue(new Uint8Array(65_000), FAR).then(({ ok }) => ok)),
  "enqueue of 65537 bytes": ({ kv }) =>
    rejection(() => kv.enqueue(new Uint8Array(65_537), FAR).then(({ ok }) => ok)),
  "enqueue of 2 MiB": ({ kv }) =>
    rejection(() => kv.enqueue(new Uint8Array(2 << 20), FAR).then(({ ok }) => ok)),
  "100 messages and 900 rows in one operation": ({ kv, at }) =>
    rejection(() => operation(kv, at, 900, 100).then(({ ok }) => ok)),
  "101 messages and 900 rows in one operation": ({ kv, at }) =>
    rejection(() => operation(kv, at, 900, 101).then(({ ok }) => ok)),
  "5 MB of messages in one operation": ({ kv, at }) =>
    rejection(() => operation(kv, at, 0, 84, 60_000).then(({ ok }) => ok)),
};

async function operation(
  kv: Deno.Kv,
  at: KvScene["at"],
  rows: number,
  messages: number,
  bytes = 1,
): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
  const atomic = kv.atomic();
  for (let i = 0; i < rows; i++) atomic.delete(at(i));
  for (let i = 0; i < messages; i++) atomic.enqueue(new Uint8Array(bytes), FAR);
  return await atomic.commit();
}

/** What the program did with handles while it loaded. */
export interface LoadedHandles {
  /** What became of the promise of a listener whose handle was closed. */
  readonly closed: Promise<unknown>;
}

const handles = (loaded: LoadedHandles): KvProbes => ({
  "a listener ends when its handle is closed": () => loaded.closed,
  "listenQueue of a closed handle": async () => {
    const other = await Deno.openKv();
    other.close();
    return await rejection(() => other.listenQueue(() => {}));
  },
  "listenQueue of a handle that was disposed of": async () => {
    const other = await Deno.openKv();
    {
      using _ = other;
    }
    return (await rejection(() => other.listenQueue(() => {}))).startsWith("did not reject");
  },
  "listenQueue while a request runs": async () => {
    const other = await Deno.openKv();
    const listens = rejection(() => other.listenQueue(() => {}));
    other.close();
    return await listens;
  },
  "several listeners": async ({ kv }) => {
    for (let i = 0; i < 30; i++) await kv.enqueue({ probe: "shared", value: i });
    const found = await delivered(kv, "shared", 30, 100);
    return [found.length, new Set(found.map(({ listener }) => listener)).has("closed")];
  },
});

/** Probes that wait for what is delivered. */
export const queueing = (loaded: LoadedHandles): KvProbes => ({
  ...values,
  ...plain,
  ...delivery,
  ...handles(loaded),
  ...options,
  ...bounds,
});

/** Probes that wait for what is tried again. */
export const retrying: KvProbes = retries;
