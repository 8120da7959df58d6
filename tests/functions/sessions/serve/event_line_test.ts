import assert from "node:assert/strict";
import type { HandledEvent } from "../../../../functions/sessions/turn/mod.ts";
import { EventLine } from "../../../../functions/sessions/serve/event_line.ts";

const timer = (name: string): HandledEvent => ({ kind: "timer", name, dueMs: 0 });

function setUp() {
  const given: string[] = [];
  const run = { isFree: true, nowMs: 0 };
  const line = new EventLine({
    give: (event) => {
      given.push(event.kind === "timer" ? event.name : "");
      run.isFree = false;
    },
    isFree: () => run.isFree,
    isIdle: () => run.isFree,
    nowMs: () => run.nowMs,
  });
  const done = () => {
    run.isFree = true;
    line.advance();
  };
  const push = (names: string) => [...names].forEach((name) => line.push(timer(name)));
  return { given, line, push, done, run };
}

Deno.test("events are given at once, in order, but where they are held (LI1, event.ts EV1)", () => {
  const { given, line, push } = setUp();
  push("ab");
  line.hold();
  push("cd");
  assert.equal(given.join(""), "ab");
  line.goOn();
  push("e");
  assert.equal(given.join(""), "abcde");
});

Deno.test("in single file the next event is given when the one before is done, so many times (LI2, LI3)", () => {
  const { given, line, push, done } = setUp();
  line.single(3);
  push("abcdef");
  for (const so of ["a", "ab", "abc"]) {
    assert.equal(given.join(""), so);
    done();
  }
  assert.equal(given.join(""), "abcdef");
});

Deno.test("what another session waits for is given when no handler runs, and is taken back until then (LI4)", () => {
  const { given, line, done, run } = setUp();
  const call = (request: string): HandledEvent => ({
    ...{ kind: "request", request, chain: ["cart/a"], bytes: new Uint8Array() },
  });
  run.isFree = false;
  line.push(call("one"));
  line.push(call("two"));
  line.push(timer("t"));
  assert.deepEqual([given.length, line.has("one"), line.has("two")], [0, true, true]);
  assert.equal(line.take("one"), true);
  assert.equal(line.take("one"), false, "it is not there any more");
  done();
  assert.equal(given.length, 2, "the other one, and what is behind it and not called");
  assert.equal(line.take("two"), false, "it was given");
  // With the last that is called gone, nothing holds what comes behind it.
  run.isFree = false;
  line.push(call("three"));
  line.push(timer("u"));
  assert.equal(given.length, 2);
  line.take("three");
  assert.equal(given.at(-1), "u");
});

Deno.test("a handler that waits for something ends single file (LI3)", () => {
  const { given, line, push, run } = setUp();
  line.single(10);
  push("abc");
  run.nowMs = 10_000;
  push("d");
  assert.equal(given.join(""), "a");
  run.nowMs = 10_001;
  push("e");
  assert.equal(given.join(""), "abcde");
});
