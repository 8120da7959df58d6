import assert from "node:assert/strict";
import fc from "fast-check";
import { originAddress } from "../../../functions/origin_address.ts";
import type { CallOutcome } from "../../../functions/sessions/turn/mod.ts";
import { CodecError } from "../../../store/model/codec.ts";
import {
  decodeOutcome,
  decodeRequest,
  encodeOutcome,
  encodeRequest,
  HttpOrigins,
  type HttpOriginServices,
  ORIGIN_KIND,
  type OriginRequest,
} from "../../../runtime/origins/http_origins.ts";
import { KeptOutcomes } from "../../../runtime/origins/kept_outcomes.ts";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";

const answer = (text: string): CallOutcome => ({ ok: true, bytes: new TextEncoder().encode(text) });
const refused: CallOutcome = { ok: false, code: "call_failed", message: "no" };

/** The root and one edge, over links that the test can cut; `made` tells what the origin got. */
function cluster(
  outcomeOf: (key: string) => Promise<CallOutcome>,
  kept = new KeptOutcomes(() => 0),
  byAgent: HttpOriginServices["byAgent"] = () => null,
) {
  const made: string[] = [];
  let isCut = false;
  const site = (id: string, send: HttpOriginServices["send"]) =>
    new HttpOrigins({
      ...{ site: id, root: () => "cloud", send, kept },
      originOf: ({ version }) =>
        Promise.resolve(version === "v1" ? originAddress("http://shop.example") : null),
      byAgent,
      make: (_origin, call, key) => {
        made.push(`${key}${call.effect === null ? " (no effect)" : ""}`);
        return outcomeOf(key);
      },
    });
  const root = site("cloud", () => Promise.reject(new Error("the root asks nobody")));
  const edge = site("edge-1", async (to, head, body, signal) => {
    assert.equal(to, "cloud");
    if (isCut) throw new Error("the link is down");
    const reply = await root.serve({ kind: ORIGIN_KIND, head, body: body(), signal });
    return { head: reply.head, body: reply.body ?? null };
  });
  return { root, edge, made, cut: () => isCut = true };
}

const request = (key: string | null, bytes = new Uint8Array([1])): OriginRequest => ({
  ...{ app: "shop", class: "cart", version: "v1", key, bytes },
});
const { signal } = new AbortController();

Deno.test("a request to an origin is made once when two homes ask for it, one after the other", async () => {
  const { edge, root, made } = cluster((key) => Promise.resolve(answer(key)));
  assert.deepEqual(await edge.fetch(request("k1"), signal), answer("k1"));
  assert.deepEqual(await root.fetch(request("k1"), signal), answer("k1"));
  assert.deepEqual(made, ["k1"]);
});

Deno.test("a request to an origin is made once when another home asks for it while it runs (kept_outcomes.ts KO1)", async () => {
  const running = Promise.withResolvers<CallOutcome>();
  const { edge, made } = cluster(() => running.promise);
  const both = [edge.fetch(request("k1"), signal), edge.fetch(request("k1"), signal)];
  running.resolve(answer("done"));
  assert.deepEqual(await Promise.all(both), [answer("done"), answer("done")]);
  assert.deepEqual(made, ["k1"]);
});

Deno.test("requests to an origin without an effect are made as often as they are asked", async () => {
  const { edge, made } = cluster(() => Promise.resolve(answer("now")));
  await edge.fetch(request(null), signal);
  await edge.fetch(request(null), signal);
  assert.deepEqual(made, [" (no effect)", " (no effect)"]);
});

Deno.test("a request to an origin that failed is made again when it is asked again (kept_outcomes.ts KO2)", async () => {
  let times = 0;
  const { edge } = cluster(() => Promise.resolve(times++ === 0 ? refused : answer("at last")));
  assert.deepEqual(await edge.fetch(request("k1"), signal), refused);
  assert.deepEqual(await edge.fetch(request("k1"), signal), answer("at last"));
});

Deno.test("the root goes nowhere for a version that names no origin (http_origins.ts HO2)", async () => {
  const { edge, made } = cluster(() => Promise.resolve(answer("")));
  const outcome = await edge.fetch({ ...request("k1"), version: "v2" }, signal);
  assert.equal(!outcome.ok && outcome.code, "origin_unknown");
  assert.deepEqual(made, []);
});

Deno.test("a request to an origin fails by its code when the root can't be reached", async () => {
  const { edge, cut } = cluster(() => Promise.resolve(answer("")));
  cut();
  const outcome = await edge.fetch(request("k1"), signal);
  assert.equal(!outcome.ok && outcome.code, "origin_unreachable");
});

Deno.test("a request that cannot be read is refused by the root when a site sends one", async () => {
  const { root, made } = cluster(() => Promise.resolve(answer("")));
  const reply = await root.serve({ kind: ORIGIN_KIND, head: new Uint8Array([9, 9]), body: null, signal });
  const outcome = decodeOutcome(reply.head, null);
  assert.equal(!outcome.ok && outcome.code, "internal");
  assert.deepEqual(made, []);
});

Deno.test("long requests and answers travel as bodies when they fit no head", async () => {
  const long = new Uint8Array(300_000).fill(7);
  const { edge } = cluster(() => Promise.resolve({ ok: true, bytes: long }));
  const outcome = await edge.fetch(request("k1", long), signal);
  assert.deepEqual(outcome.ok && outcome.bytes, long);
});

Deno.test("requests and outcomes read back when they were written", () => {
  fc.assert(fc.property(
    fc.record({
      app: fc.string(),
      class: fc.string(),
      version: fc.string(),
      key: fc.option(fc.string({ minLength: 1 })),
      bytes: fc.uint8Array(),
    }, { noNullPrototype: true }),
    (asked) => {
      const { head, body } = encodeRequest(asked);
      assert.deepEqual(decodeRequest(head, body), asked);
    },
  ));
  fc.assert(fc.property(fc.uint8Array(), (bytes) => {
    try {
      decodeOutcome(bytes, null);
      decodeRequest(bytes, null);
    } catch (error) {
      assert.ok(error instanceof CodecError);
    }
  }));
  const { head, body } = encodeOutcome(refused);
  assert.deepEqual(decodeOutcome(head, body), refused);
});

Deno.test("kept outcomes stay within their bounds when many end", async () => {
  let nowMs = 0;
  const kept = new KeptOutcomes(() => nowMs, 10_000);
  const once = (key: string, bytes: number) =>
    kept.once(key, () => Promise.resolve({ ok: true, bytes: new Uint8Array(bytes) }));
  for (let i = 0; i < 20; i++) await once(`k${i}`, 1_000);
  assert.equal(kept.size, 7, "7 × 1,300 bytes");
  let isMade = false;
  await kept.once("k19", () => {
    isMade = true;
    return Promise.resolve(refused);
  });
  assert.ok(!isMade, "the newest are kept");
  nowMs = 11 * 60_000;
  await once("later", 1);
  assert.equal(kept.size, 1, "nothing is kept for more than 10 minutes");
});

Deno.test("a request is not made again by a root that was restarted, nor by another agent (HO1, KO3)", async () => {
  const storage = new MemoryStorage();
  let nowMs = 1_000_000;
  const clock = {
    nowMs: () => nowMs,
    steadyMs: () => nowMs,
    after: () => () => {},
    turn: () => Promise.resolve(),
  };
  const fatal = (error: Error) => assert.fail(error.message);
  const open = () => KeptOutcomes.open({ storage, clock, fatal });
  const first = cluster((key) => Promise.resolve(answer(key)), await open());
  assert.deepEqual(await first.edge.fetch(request("k1"), signal), answer("k1"));
  const asked: string[] = [];
  const byAgent = ({ key }: OriginRequest) => {
    asked.push(String(key));
    return Promise.resolve(answer(`agent ${key}`));
  };
  const second = cluster(() => assert.fail("the agent makes it"), await open(), byAgent);
  assert.deepEqual(await second.edge.fetch(request("k1"), signal), answer("k1"));
  assert.deepEqual(await second.edge.fetch(request("k2"), signal), answer("agent k2"));
  const third = cluster(() => assert.fail("the agent makes it"), await open(), byAgent);
  assert.deepEqual(await third.edge.fetch(request("k2"), signal), answer("agent k2"), "kept by the root");
  assert.deepEqual(asked, ["k2"]);
  nowMs += 10 * 60_000 + 1;
  const late = await open();
  assert.equal(late.size, 0, "for ten minutes");
  await late.close();
  assert.equal(await storage.bytes(), 0);
});

Deno.test("an outcome leaves when it is on disk, and not where the disk has failed (KO3)", async () => {
  const storage = new MemoryStorage();
  const clock = { nowMs: () => 0, steadyMs: () => 0, after: () => () => {}, turn: () => Promise.resolve() };
  const fatal: string[] = [];
  const kept = await KeptOutcomes.open({ storage, clock, fatal: ({ message }) => fatal.push(message) });
  const writing = Promise.withResolvers<void>();
  const commit = storage.commit.bind(storage);
  storage.commit = async (step) => {
    await writing.promise;
    await commit(step);
  };
  let isOut = false;
  const one = kept.once("k", () => Promise.resolve(answer("k"))).then((outcome) => {
    isOut = true;
    return outcome;
  });
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(isOut, false);
  writing.resolve();
  assert.deepEqual(await one, answer("k"));
  storage.commit = () => Promise.reject(new Error("a disk that is full"));
  const outcome = await kept.once("k2", () => Promise.resolve(answer("k2")));
  assert.deepEqual([outcome.ok, fatal], [false, ["a disk that is full"]]);
});

Deno.test("what an origin answers when the root has stopped is not written to its closed disk", async () => {
  const storage = new MemoryStorage();
  const clock = { nowMs: () => 0, steadyMs: () => 0, after: () => () => {}, turn: () => Promise.resolve() };
  const fatal = (error: Error) => assert.fail(error.message);
  const kept = await KeptOutcomes.open({ storage, clock, fatal });
  const answered = Promise.withResolvers<ReturnType<typeof answer>>();
  await kept.once("k1", () => Promise.resolve(answer("k1")));
  void kept.once("k2", () => answered.promise);
  await kept.close();
  assert.ok(await storage.bytes() > 0, "what ended before is kept");
  storage.commit = () => Promise.reject(new Error("a step of a disk that is closed"));
  answered.resolve(answer("k2"));
  await new Promise((resolve) => setTimeout(resolve));
});
