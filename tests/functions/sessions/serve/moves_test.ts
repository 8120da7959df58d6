/** Why a stateful session is not moved, and how it goes on then, over real homes, logs and replays, without processes. */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { OpenHome } from "../../../../functions/sessions/home/open_home.ts";
import { Session } from "../../../../functions/class/session.ts";
import { SessionState } from "../../../../functions/tracked/mod.ts";
import type { PeerClock } from "../../../../functions/sessions/attach/mod.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { moveRun } from "../../../../functions/sessions/serve/moves.ts";
import type { SessionRun } from "../../../../functions/sessions/serve/session_run.ts";
import { HandClock } from "../attach/peer_pair.ts";
import { Disks, type MemoryHost, memoryHost } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };

class Robot extends Session {
  kept: unknown = { deep: [() => {}] };
  look(): void {}
}

class Counter extends Session {
  count = 0;
  add(): number {
    return ++this.count;
  }
}

/** Has the session count, until it has answered. */
const adding = ({ host }: MemoryHost) => async (request: string): Promise<unknown> => {
  const bytes = encodeCall({ kind: "rpc", method: "add", args: encodeValue([]) });
  const { answer } = await host.request(NAME, { request, chain: [], bytes, token: null });
  host.received(NAME, request);
  const told = decodeAnswer(answer);
  return told.kind === "value" ? decodeValue(told.value) : told;
};

/** What something comes to, unless that takes seconds. */
async function inTime(done: Promise<string>): Promise<string> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(() => resolve("it waits still"), 3_000);
  return await Promise.race([done, late]).finally(() => clearTimeout(timer));
}

Deno.test("a session whose state can't be written down is not moved, and it is said why", async () => {
  await using host = await memoryHost(() => new Robot() as unknown as SessionObject);
  const bytes = encodeCall({ kind: "rpc", method: "look", args: encodeValue([]) });
  const { check } = SessionState.prototype;
  SessionState.prototype.check = () => {}; // as before it was looked for at the end of each handler
  try {
    await host.host.request(NAME, { request: "first", chain: [], bytes, token: null });
  } finally {
    SessionState.prototype.check = check;
  }
  const { prepareMove } = OpenHome.prototype;
  OpenHome.prototype.prepareMove = () => Promise.resolve(); // there is no other site here
  try {
    await assert.rejects(host.host.move(NAME, "edge-2", 5_000), {
      code: "move_refused",
      message: /stands still: state_invalid: can't keep kept\.deep\[0\]/,
    });
  } finally {
    OpenHome.prototype.prepareMove = prepareMove;
  }
});

Deno.test("what comes while a session is about to move is done here where the move fails, and all after it (MV1)", async () => {
  await using host = await memoryHost(() => new Counter() as unknown as SessionObject);
  const add = adding(host);
  assert.equal(await add("first"), 1);
  const { prepareMove, moveTo } = OpenHome.prototype;
  const asked = Promise.withResolvers<Promise<unknown>>();
  OpenHome.prototype.prepareMove = () => Promise.resolve(); // there is no other site here
  OpenHome.prototype.moveTo = async () => {
    const meanwhile = add("meanwhile");
    asked.resolve(meanwhile);
    const isDone = await Promise.race([meanwhile.then(() => true), new Promise((go) => setTimeout(go, 20))]);
    assert.notEqual(isDone, true, "it waits for whoever is the home then");
    throw new HomeError("move_refused", "it did not answer");
  };
  try {
    await assert.rejects(host.host.move(NAME, "edge-2", 5_000), { code: "move_refused" });
  } finally {
    Object.assign(OpenHome.prototype, { prepareMove, moveTo });
  }
  assert.equal(await await asked.promise, 2);
  assert.equal(await add("last"), 3);
});

Deno.test("a session whose owners do not take what it did is not moved, and goes on when they do (MV2)", async () => {
  const disks = new Disks();
  await using host = await memoryHost(() => new Counter() as unknown as SessionObject, { disks });
  const add = adding(host);
  assert.equal(await add("first"), 1);
  const { prepareMove } = OpenHome.prototype;
  OpenHome.prototype.prepareMove = () => Promise.resolve(); // there is no other site here
  const release = disks.homes.hold(), second = add("second");
  try {
    const moved = host.host.move(NAME, "edge-2", 50).then(() => "moved", ({ code, message }) => {
      assert.match(message, /not at all owners/);
      return code;
    });
    assert.equal(await inTime(moved), "move_refused");
  } finally {
    OpenHome.prototype.prepareMove = prepareMove;
    release();
  }
  assert.equal(await second, 2);
  assert.equal(await add("last"), 3);
});

Deno.test("what was begun is waited for as long as was said, and no longer (MV2)", async () => {
  const clock = new HandClock(), nothing = () => {};
  clock.turn(10_000);
  const run = {
    ...{ settled: new Promise(nothing), isOver: false, unsent: null, line: { hold: nothing, goOn: nothing } },
    home: { name: NAME, prepareMove: () => Promise.resolve(), stay: nothing },
  };
  let told = "";
  moveRun(run as unknown as SessionRun, "edge-2", 1_000, clock).catch(({ code }) => told = code);
  for (const [ms, code] of [[0, ""], [999, ""], [1, "move_refused"]] as const) {
    clock.turn(ms);
    await new Promise((resolve) => setTimeout(resolve));
    assert.equal(told, code);
  }
});

Deno.test("a site that stops does not wait for the one that is to take a session over", async () => {
  const SPEED = 50;
  const peerClock: PeerClock = {
    nowMs: () => performance.now() * SPEED,
    after: (ms, run) => SYSTEM_CLOCK.after(ms / SPEED, run),
  };
  await using host = await memoryHost(() => new Counter() as unknown as SessionObject, { peerClock });
  assert.equal(await adding(host)("first"), 1);
  const { prepareMove } = OpenHome.prototype,
    heirs = Object.getOwnPropertyDescriptor(OpenHome.prototype, "heirs");
  const asked: string[] = [];
  OpenHome.prototype.prepareMove = (to) => {
    asked.push(to);
    return new Promise(() => {}); // it gets no log
  };
  Object.defineProperty(OpenHome.prototype, "heirs", { configurable: true, get: () => ["edge-2"] });
  try {
    assert.equal(await inTime(host.host.close().then(() => "closed")), "closed");
    assert.deepEqual(asked, ["edge-2"]);
  } finally {
    OpenHome.prototype.prepareMove = prepareMove;
    if (heirs !== undefined) Object.defineProperty(OpenHome.prototype, "heirs", heirs);
  }
});
