/** What a site's messages wait for (functions/queues/backlog.ts, leases.ts). */
import { strict as assert } from "node:assert";
import fc from "fast-check";
import { MessageBacklog } from "../../../functions/queues/backlog.ts";
import { Leases } from "../../../functions/queues/leases.ts";

Deno.test("each message waits for one thing, and the counts of its queue add up (BL1)", () => {
  const steps = fc.array(
    fc.tuple(
      fc.constantFrom("add", "ready", "back", "delay", "bury", "take", "hold", "forget", "due"),
      fc.nat(12),
      fc.nat(1),
      fc.nat(30),
    ),
  );
  fc.assert(fc.property(steps, (all) => {
    const backlog = new MessageBacklog(), queues = [backlog.queue("a"), backlog.queue("b")];
    const plain = new Map<number, { queue: number; state: string; bytes: number; dueMs: number }>();
    for (const [step, slot, at, number] of all) {
      const queue = queues[at] ?? backlog.queue("a"), one = plain.get(slot);
      if (step === "add" && one === undefined) {
        backlog.add(queue, slot, number);
        plain.set(slot, { queue: at, state: "taken", bytes: number, dueMs: Infinity });
      } else if (step === "take") {
        const taken = backlog.take(queue);
        if (taken !== null) (plain.get(taken) ?? { state: "" }).state = "taken";
        else assert.ok(![...plain.values()].some((other) => other.queue === at && other.state === "ready"));
      } else if (step === "due") {
        const due = backlog.nextDue(number);
        const waiting = [...plain.values()].filter((other) =>
          other.state === "delayed" && other.dueMs <= number
        );
        assert.equal(due === null, waiting.length === 0);
        if (due !== null) {
          backlog.ready(due);
          (plain.get(due) ?? { state: "" }).state = "ready";
        }
      } else if (one === undefined) backlog.forget(slot);
      else if (step === "ready" || step === "back") {
        backlog.ready(slot, step === "back");
        one.state = "ready";
      } else if (step === "delay") {
        backlog.delay(slot, number);
        one.state = "delayed";
        one.dueMs = number;
      } else if (step === "bury") {
        backlog.bury(slot);
        one.state = "dead";
      } else if (step === "hold") {
        backlog.hold(slot);
        one.state = "taken";
      } else if (step === "forget") {
        backlog.forget(slot);
        plain.delete(slot);
      }
    }
    for (const [at, queue] of queues.entries()) {
      const own = [...plain].filter(([, one]) => one.queue === at);
      for (const kind of ["ready", "delayed", "dead"] as const) {
        const listed = [...backlog.list(queue, kind)].sort((a, b) => a - b);
        assert.deepEqual(
          listed,
          own.filter(([, one]) => one.state === kind).map(([slot]) => slot).sort((a, b) => a - b),
        );
        assert.equal(backlog.count(queue, kind), listed.length);
      }
      assert.equal(backlog.size(queue), own.length);
      assert.equal(queue.taken, own.filter(([, one]) => one.state === "taken").length);
      assert.equal(queue.bytes, own.reduce((sum, [, one]) => sum + one.bytes, 0));
    }
  }));
});

Deno.test("a message that is taken in vain comes before those that are ready", () => {
  const backlog = new MessageBacklog(), queue = backlog.queue("q");
  for (const slot of [5, 6]) {
    backlog.add(queue, slot, 1);
    backlog.ready(slot);
  }
  assert.equal(backlog.take(queue), 5);
  backlog.ready(5, true);
  assert.deepEqual([...backlog.list(queue, "ready")], [5, 6]);
});

Deno.test("what is dead or forgotten does not expire", () => {
  const backlog = new MessageBacklog(), queue = backlog.queue("q");
  for (const slot of [0, 1, 2]) {
    backlog.add(queue, slot, 1);
    backlog.ready(slot);
    backlog.expire(slot, 100 + slot);
  }
  backlog.bury(0);
  backlog.forget(1);
  assert.deepEqual([backlog.nextMs, backlog.nextExpired(101), backlog.nextExpired(102)], [102, null, 2]);
});

Deno.test("a message is lent to one at a time, under a number that comes once (LE1)", () => {
  const leases = new Leases(100), queue = new MessageBacklog().queue("q");
  const of = { slot: 1, id: "x", queue, to: "a", isPull: false };
  const first = leases.lend(of, 50);
  assert.throws(() => leases.lend(of, 60), /LE1/);
  leases.end(1);
  const second = leases.lend(of, 70);
  assert.deepEqual([first.number, second.number], [100, 101]);
  assert.deepEqual([leases.holds(first), leases.holds(second)], [false, true]);
  leases.extend(first, 500);
  assert.equal(leases.nextEndMs, 70);
  leases.extend(second, 90);
  assert.deepEqual([leases.nextEnded(89), leases.nextEnded(90)], [undefined, second]);
});
