/**
 * In a process of its own: a message of a stateful session through the executor, 64 in flight, beside the same handler
 * without one, and its replay. In one macrotask, with no site and no socket.
 */
import { decodeCall, encodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import type { FeedHome } from "../../../functions/sessions/sealed/mod.ts";
import { HostFeeds } from "../../../functions/sessions/sealed/mod.ts";
import { type From, Session } from "../../../functions/class/session.ts";
import { decodeValue, encodeValue } from "../../../functions/values/value.ts";
import { NO_HEAD, wrapPiece } from "../../../functions/sessions/serve/pieces.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

class Counter extends Session {
  n = 0;
  add(by: number): number {
    return this.n += by;
  }

  /** The same as a message. */
  override onMessage(message: string | Uint8Array, from: From): void {
    from.send(answered(message as Uint8Array, this));
  }
}

/** What a function does with the bytes of a call. */
function answered(bytes: Uint8Array, counter: { add(by: number): number }): Uint8Array {
  const call = decodeCall(bytes);
  if (call.kind !== "rpc") throw new Error("it is a method's");
  const [by = 0] = decodeValue(call.args) as number[];
  return encodeAnswer({ kind: "value", value: encodeValue(counter.add(by)) });
}

const IN_FLIGHT = 64;
/** So many are replayed at most: a checkpoint comes then (stateful_session.ts). */
const REPLAYED = 250;

const { messages } = freshInput() as { readonly messages: number };
const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([1]) });

/** µs a message, of `work` on so many. */
function usOf(count: number, work: () => void): number {
  const begun = performance.now();
  work();
  return (performance.now() - begun) * 1000 / count;
}

/** Without a session. */
function bare(): void {
  const counter = { n: 0, add: (by: number) => counter.n += by };
  for (let i = 0; i < messages; i++) answered(bytes, counter);
  if (counter.n !== messages) throw new Error("some were lost");
}

function opened(count: number): Solo {
  const solo = new Solo(Counter);
  for (let channel = 1; channel <= count; channel++) solo.open({ id: `session ${channel}` }, channel);
  return solo;
}

function recorded(solo: Solo): void {
  for (let round = 1; round <= messages / IN_FLIGHT; round++) {
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      const request = `request ${round}`;
      solo.loop.deliver(channel, {
        kind: "request",
        request,
        chain: [],
        bytes,
        number: round,
        storeClock: round,
      });
    }
    solo.run();
    for (const { outputs } of solo.commits.splice(0)) if (outputs.length !== 1) throw new Error("no answer");
    solo.checkpoints.length = 0;
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      solo.loop.acknowledge(channel, { outputs: { [`request ${round}`]: 1 }, effects: 0 });
    }
  }
}

/** Peers' ids are so long. */
const PEER = "peer-00-0000";

/** A session's client, which holds its log: what a home has of it. */
function holder(id: string): { readonly feeds: HostFeeds; readonly home: { last: number } } {
  const home: { -readonly [K in keyof FeedHome]: FeedHome[K] } = {
    ...{ name: { app: "bench", class: "counter", id }, epoch: 1, last: 0, released: 0, copyBytes: 0 },
    copy: () =>
      Promise.resolve({ seed: new Uint8Array(32), version: "v1", base: null, parts: [], pieces: [] }),
    hosts: { has: () => true, drop: () => {}, told: () => {}, isAhead: () => true, isAwaited: () => true },
  };
  const feeds = new HostFeeds(home, {
    ...{ secret: new Uint8Array(32), ready: () => {} },
    random: (length) => crypto.getRandomValues(new Uint8Array(length)),
    failed: (_, error) => {
      throw error;
    },
  });
  feeds.attach(PEER, null);
  return { feeds, home };
}

type Holders = readonly ReturnType<typeof holder>[];

/** Of so many sessions: ready to be sent what comes. */
async function holders(): Promise<Holders> {
  const all = Array.from({ length: IN_FLIGHT }, (_, i) => holder(`session ${i + 1}`));
  for (let turn = 0; turn < 10; turn++) await null;
  return all;
}

/** Sessions with a client each that has attached. */
function attached(): Solo {
  const solo = opened(IN_FLIGHT);
  for (let channel = 1; channel <= IN_FLIGHT; channel++) {
    solo.loop.deliver(channel, {
      ...{ kind: "attach", peer: { kind: "client", id: PEER }, number: 1, storeClock: 1 } as const,
    });
  }
  solo.run();
  solo.commits.length = 0;
  return solo;
}

/** Messages of those clients; `holders`: with each answer what its client is to hold. */
function exchanged(solo: Solo, holders: Holders): void {
  for (let round = 1; round <= messages / IN_FLIGHT; round++) {
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      solo.loop.deliver(channel, {
        ...{ kind: "message", peer: PEER, message: bytes, number: round + 1, storeClock: round + 1 } as const,
      });
    }
    solo.run();
    for (const [at, { outputs, count, entries }] of solo.commits.splice(0).entries()) {
      if (outputs.length !== 1) throw new Error("no answer");
      const { feeds, home } = holders[at] ?? {};
      if (feeds === undefined || home === undefined) continue;
      const piece = { epoch: 1, first: home.last + 1, count, wakeAtMs: 0 };
      feeds.appended({ ...piece, bytes: wrapPiece(NO_HEAD, entries) });
      home.last += count;
      if (feeds.next(PEER).length === 0) throw new Error("nothing is sent");
      feeds.taken(PEER, round);
    }
    solo.checkpoints.length = 0;
    for (let channel = 1; channel <= IN_FLIGHT; channel++) {
      solo.loop.acknowledge(channel, { outputs: { [PEER]: round }, effects: 0 });
    }
  }
}

function logOf(): Uint8Array {
  const solo = new Solo(Counter).open();
  for (let i = 0; i < REPLAYED; i++) {
    solo.deliver({ kind: "request", request: `request ${i}`, chain: [], bytes });
  }
  return solo.entries;
}

function replayed(entries: Uint8Array, times: number): void {
  for (let i = 0; i < times; i++) {
    const { parked } = new Solo(Counter).open({ entries });
    if (parked !== null) throw new Error(parked.message);
  }
}

// The first round is for the compiler.
const readied = [await holders(), await holders()];
freshAnswer(
  await inMacrotask(() => {
    const times = Math.ceil(messages / REPLAYED);
    const entries = logOf();
    for (let round = 0;; round++) {
      const without = usOf(messages, bare);
      const solo = opened(IN_FLIGHT);
      const within = usOf(messages, () => recorded(solo));
      const again = usOf(times * REPLAYED, () => replayed(entries, times));
      const [messaged, sealed] = [[], readied[round] ?? []].map((each) => {
        const solo = attached();
        return usOf(messages, () => exchanged(solo, each));
      });
      if (round > 0) {
        return {
          without,
          within,
          again,
          messaged,
          sealed,
          logBytes: entries.length / REPLAYED,
        };
      }
    }
  }),
);
