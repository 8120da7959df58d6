/** Stateful sessions that wait for each other, as those who look from site to site see it. */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import {
  type CallWait,
  decodeWaits,
  decodeWaitsAsked,
  encodeWaits,
  encodeWaitsAsked,
  NO_WAITS,
  victim,
  WAITED_CALLS_MAX,
  type WaitedCall,
} from "../../../../functions/sessions/serve/waits.ts";

const of = (id: string) => ({ app: "shop", class: "cart", id });

/** Calls by id, as "caller callee"; those of `begun` run where they are for. */
class Waiting {
  readonly calls = new Map<string, readonly [from: string, to: string]>();
  readonly begun = new Set<string>();
  asked = 0;

  constructor(calls: Record<string, string>, begun: readonly string[] = []) {
    for (const [request, pair] of Object.entries(calls)) {
      const [from = "", to = ""] = pair.split(" ");
      this.calls.set(request, [from, to]);
    }
    for (const request of begun) this.begun.add(request);
  }

  from(id: string): WaitedCall[] {
    return [...this.calls].filter(([, [from]]) => from === id).map(([request, [, to]]) => ({
      name: of(to),
      request,
    }));
  }

  waits({ name, request }: WaitedCall): CallWait {
    if (!this.calls.has(request)) return NO_WAITS;
    return { isQueued: !this.begun.has(request), calls: this.from(name.id) };
  }

  /** What fails at a session, if it looks now. */
  async at(id: string, changed: () => void = () => {}): Promise<string | undefined> {
    const look = () => ({
      calls: this.from(id),
      queued: new Set(
        [...this.calls].filter(([one, [, to]]) => to === id && !this.begun.has(one)).map(([one]) => one),
      ),
    });
    const found = await victim(look, (call) => {
      this.asked++;
      const waits = this.waits(call);
      changed();
      return Promise.resolve(waits);
    });
    return found?.request;
  }

  async all(): Promise<string[]> {
    const ids = [...new Set([...this.calls.values()].flat())];
    const failed = await Promise.all(ids.map((id) => this.at(id)));
    return failed.filter((one) => one !== undefined);
  }
}

Deno.test("of those that wait for each other one fails, whoever looks (W2)", async () => {
  for (
    const { calls, begun, fails } of [
      { calls: { r1: "x y", r2: "y x" }, begun: [], fails: ["r2"] },
      { calls: { r9: "x y", r2: "y x" }, begun: [], fails: ["r9"] },
      { calls: { r1: "x y", r3: "y z", r2: "z x" }, begun: [], fails: ["r3"] },
      // One that runs is not the one: what it did would have to be undone.
      { calls: { r1: "x y", r3: "y z", r2: "z x" }, begun: ["r3"], fails: ["r2"] },
      // It waits for several, and one of them waits for it.
      { calls: { r1: "x y", r5: "x w", r3: "w v", r2: "y x" }, begun: [], fails: ["r2"] },
      { calls: { r1: "x y", r2: "y x", r3: "a b", r4: "b a" }, begun: [], fails: ["r2", "r4"] },
      { calls: { r1: "x y", r2: "y z" }, begun: [], fails: [] },
      { calls: { r1: "w y", r2: "y x", r3: "v x" }, begun: ["r2"], fails: [] },
    ]
  ) {
    assert.deepEqual((await new Waiting(calls, begun).all()).sort(), fails, JSON.stringify(calls));
  }
});

Deno.test("a step that was there only once is none (W1)", async () => {
  const waiting = new Waiting({ r1: "x y", r2: "y x" });
  let asked = 0;
  // Between the looks y has its answer, and asks again: the same sessions, another call.
  const changed = () => {
    if (asked++ > 0) return;
    waiting.calls.delete("r1");
    waiting.calls.set("r0", ["x", "y"]);
  };
  assert.equal(await waiting.at("x", changed), undefined);
  assert.equal(await waiting.at("x"), "r2", "it is there by now");
});

Deno.test("whatever waits for whatever, a look ends, and who fails is in a circle; where there is one, one fails (W2, W3)", async () => {
  const site = fc.constantFrom(..."abcdef");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(site, site), { maxLength: 10 }), async (pairs) => {
      const calls = Object.fromEntries(pairs.map((pair, at) => [`r${at}`, pair.join(" ")]));
      const waiting = new Waiting(calls);
      const failed = await waiting.all();
      const isLeft = (edges: readonly string[][]): boolean => {
        const next = edges.filter(([, to]) => edges.some(([from]) => from === to));
        return next.length === edges.length ? edges.length > 0 : isLeft(next);
      };
      assert.equal(failed.length > 0, isLeft(pairs), JSON.stringify(calls));
      for (const request of failed) {
        const [from = "", to = ""] = waiting.calls.get(request) ?? [];
        const reached = new Set([to]);
        for (const one of reached) waiting.from(one).forEach(({ name }) => reached.add(name.id));
        assert.ok(reached.has(from), `${request} is in no circle of ${JSON.stringify(calls)}`);
      }
    }),
    { numRuns: 500, seed: 5 },
  );
});

Deno.test("a look asks so often, and no more (W3)", async () => {
  const calls = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`r${at}`, `s${at} s${at + 1}`]));
  const waiting = new Waiting({ ...calls, last: "q s0" });
  assert.equal(await waiting.at("s0"), undefined);
  assert.equal(waiting.asked, 64);
});

Deno.test("the question and its answer are read as they were written, and nothing else is", () => {
  const asked = { name: of("x"), request: "r1", to: "edge-1", hops: 3 };
  assert.deepEqual(decodeWaitsAsked(encodeWaitsAsked(asked)), asked);
  const waits = { isQueued: true, calls: [{ name: of("y"), request: "r2" }] };
  assert.deepEqual(decodeWaits(encodeWaits(waits), "shop"), waits);
  const calls = Array.from({ length: WAITED_CALLS_MAX + 1 }, () => ({ name: of("y"), request: "r" }));
  assert.throws(() => decodeWaits(encodeWaits({ isQueued: false, calls }), "shop"), /at most 64/);
  assert.throws(() => decodeWaitsAsked(encodeWaitsAsked(asked).subarray(1)));
  assert.throws(() => decodeWaitsAsked(encodeWaitsAsked({ ...asked, hops: 17 })), /at most 16/);
});
