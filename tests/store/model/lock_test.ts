import assert from "node:assert/strict";
import { GOES_ON, type Lane, Lock, SLICE_MS } from "../../../store/model/lock.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Time that passes where a body says so. */
class Bench {
  nowMs = 0;
  turns = 0;
  readonly begun: string[] = [];
  readonly lock = new Lock({
    steadyMs: () => this.nowMs,
    turn: () => {
      this.turns++;
      this.begun.push("turn");
      return turn();
    },
  });

  body(name: string, ms: number): () => Promise<string> {
    return async () => {
      this.begun.push(name);
      this.nowMs += ms;
      await Promise.resolve();
      return name;
    };
  }
}

/** Goes on when it is let go. */
class Debtor implements Lane {
  mayHold = true;
  readonly heldMs: number[] = [];
  #go: (() => void)[] = [];

  held(ms: number): void {
    this.heldMs.push(ms);
    this.mayHold = false;
  }

  whenMayHold(go: () => void): void {
    this.#go.push(go);
  }

  get waiting(): number {
    return this.#go.length;
  }

  pay(): void {
    this.mayHold = true;
    for (const go of this.#go.splice(0)) go();
  }
}

const free = (): Lane => ({ mayHold: true, held: () => {}, whenMayHold: () => assert.fail() });

Deno.test("bodies hold the lock one after the other, and one that fails harms no other (TL1)", async () => {
  const { lock } = new Bench();
  let held = 0;
  const body = (ends: number) => async () => {
    assert.equal(held++, 0);
    await turn();
    held--;
    if (ends === 1) throw new Error("one");
    return ends;
  };
  const all = [0, 1, 2].map((ends) => lock.run(body(ends)));
  const wrong = lock.run(() => {
    throw new Error("at once");
  });
  assert.deepEqual((await Promise.allSettled([...all, wrong])).map(({ status }) => status), [
    "fulfilled",
    "rejected",
    "fulfilled",
    "rejected",
  ]);
  assert.equal(await lock.run(body(3)), 3);
});

Deno.test("who asks for a hundred things at once waits for himself, and keeps his order (TL1, TL2)", async () => {
  const bench = new Bench(), greedy = free(), other = free();
  const all = Array.from({ length: 100 }, (_, i) => bench.lock.run(bench.body(`${i}`, 0), greedy));
  await Promise.resolve();
  all.push(bench.lock.run(bench.body("other", 0), other), bench.lock.run(bench.body("own", 0)));
  await Promise.all(all);
  assert.ok(
    bench.begun.indexOf("other") <= 2 && bench.begun.indexOf("own") <= 3,
    bench.begun.slice(0, 5).join(),
  );
  assert.deepEqual(
    bench.begun.filter((name) => /\d/.test(name)),
    Array.from({ length: 100 }, (_, i) => `${i}`),
  );
});

Deno.test("a lane is told what its bodies took, and waits until it may go on; the site's own work does not (TL2)", async () => {
  const bench = new Bench(), debtor = new Debtor();
  const all = ["first", "second"].map((name) => bench.lock.run(bench.body(name, 5), debtor));
  await turn();
  await bench.lock.run(bench.body("own", 0));
  await bench.lock.run(bench.body("own", 0));
  assert.deepEqual([bench.begun.filter((name) => name !== "turn"), debtor.heldMs], [["first", "own", "own"], [
    5,
  ]]);
  await turn();
  assert.equal(debtor.waiting, 1, "it is asked once");
  debtor.pay();
  await all[1];
  await turn();
  assert.deepEqual(debtor.heldMs, [5, 5]);
});

Deno.test("after a slice of bodies everything else has a turn (TL3)", async () => {
  const bench = new Bench();
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => bench.lock.run(bench.body(`${i}`, SLICE_MS / 4), free())),
  );
  assert.equal(bench.turns, 10);
});

Deno.test("reads beside the lock wait for no other, and take turns as holders do (TL2, TL3)", async () => {
  const bench = new Bench(), debtor = new Debtor();
  const held = Promise.withResolvers<void>(), slow = Promise.withResolvers<void>();
  const holder = bench.lock.run(() => held.promise);
  const reads = [
    bench.lock.read(async () => {
      bench.nowMs += 2 * SLICE_MS;
      await slow.promise;
    }, debtor),
    bench.lock.read(bench.body("next", 0), debtor),
    bench.lock.read(bench.body("other", 0)),
  ];
  await reads[2];
  assert.deepEqual(bench.begun, ["turn", "other"]);
  debtor.pay();
  await reads[1];
  slow.resolve();
  held.resolve();
  await Promise.all([holder, ...reads]);
});

Deno.test("what runs in steps lets others go first, and where it keeps its place only those of other lanes (TL4)", async () => {
  const order = async (lane: Lane | null, keepsPlace: boolean) => {
    const bench = new Bench(), other = free();
    let steps = 0;
    const step = () => {
      bench.begun.push(`step ${++steps}`);
      return Promise.resolve(steps === 3 ? "whole" : GOES_ON);
    };
    const whole = bench.lock.runSteps(step, lane, keepsPlace);
    await Promise.all([
      whole,
      ...["own 1", "own 2"].map((name) => bench.lock.run(bench.body(name, 0), lane)),
      ...["other 1", "other 2"].map((name) => bench.lock.run(bench.body(name, 0), other)),
    ]);
    assert.equal(await whole, "whole");
    return bench.begun.join(", ");
  };
  assert.equal(await order(free(), true), "step 1, other 1, step 2, other 2, step 3, own 1, own 2");
  assert.equal(await order(free(), false), "step 1, other 1, own 1, other 2, own 2, step 2, step 3");
  assert.equal(
    await order(null, true),
    await order(free(), false),
    "the site's own work waits for none of it",
  );
});
