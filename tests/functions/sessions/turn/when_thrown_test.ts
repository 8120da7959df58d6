/** What becomes of messages whose handlers throw, by the policy of their class. */
import assert from "node:assert/strict";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { HANDLER_ATTEMPTS_MAX, verdictOfThrown } from "../../../../functions/class/when_thrown.ts";
import { inMacrotask } from "./run.ts";
import { Solo } from "./solo.ts";

class Talker extends Session {
  static isBroken = true;
  heard: string[] = [];

  override onMessage(message: string | Uint8Array): void {
    this.heard.push(String(message));
    if (Talker.isBroken) throw Object.assign(new Error("no"), { code: "broken" });
  }

  override onClose(): void {
    throw new Error("gone, and complains");
  }
}

const classOf = (whenThrown: string) =>
  class extends Talker {
    static whenThrown = whenThrown;
  } as unknown as new () => SessionObject;

const peer = { kind: "client", id: "p" } as const;
const message = { kind: "message", peer: "p", message: "hello" } as const;
const rejections = ({ commits }: Solo) =>
  commits.flatMap(({ rejected }) => rejected === null ? [] : [rejected]);
const heard = (solo: Solo) => (solo.object as unknown as Talker).heard;
const receivedOf = (entries: Uint8Array, whenThrown: string) =>
  new Solo(classOf(whenThrown)).open({ entries }).opened?.peers.map(({ received }) => received);

function attached(whenThrown: string): Solo {
  Talker.isBroken = true;
  return new Solo(classOf(whenThrown)).open().deliver({ kind: "attach", peer });
}

Deno.test("a message whose handler throws is given up, said so, and counts as received", () =>
  inMacrotask(() => {
    const solo = attached("reject").deliver(message);
    assert.deepEqual(rejections(solo), [
      { subject: { kind: "message", id: "p" }, attempt: 0, code: "broken", message: "no" },
    ]);
    assert.deepEqual(heard(solo), []);
    assert.deepEqual([solo.commits.at(-1)?.through, receivedOf(solo.entries, "reject")], [2, [1]]);
    solo.deliver({ kind: "detach", peer: "p" });
    assert.deepEqual(receivedOf(solo.entries, "reject"), [], "who has gone has gone, whatever onClose does");
  }));

Deno.test("a message is tried again, what comes after it waits, and it is heard once", () =>
  inMacrotask(() => {
    const solo = attached("retry").deliver(message);
    assert.deepEqual(rejections(solo).map(({ attempt }) => attempt), [1]);
    assert.deepEqual(
      [solo.commits.at(-1)?.through, solo.commits.at(-1)?.isQuiescent],
      [1, false],
      "it is not done",
    );
    assert.deepEqual(receivedOf(solo.entries, "retry"), [0], "nor counted: its host sends it again");
    solo.deliver({ ...message, message: "second" });
    Talker.isBroken = false;
    solo.timersDue.shift()?.();
    solo.run();
    assert.deepEqual(heard(solo), ["hello", "second"]);
    assert.deepEqual([solo.commits.at(-1)?.through, receivedOf(solo.entries, "retry")], [3, [2]]);
  }));

Deno.test("a message that throws each time parks its session in the end, with the state before it", () =>
  inMacrotask(() => {
    const solo = attached("retry").deliver(message);
    for (let tries = 1; solo.parked === null && tries < 10; tries++) {
      solo.timersDue.shift()?.();
      solo.run();
    }
    assert.equal(solo.parked?.code, "handler_threw");
    assert.match(solo.parked?.message ?? "", /message "p" threw, 5 times: no/);
    assert.deepEqual(rejections(solo).map(({ attempt }) => attempt), [1, 2, 3, 4, HANDLER_ATTEMPTS_MAX]);
    const [checkpoint = null] = solo.checkpoints;
    assert.notEqual(checkpoint, null, "other code can go on from there");
    Talker.isBroken = false;
    const next = new Solo(classOf("park")).open({ checkpoint, code: "newer" }).deliver(message);
    assert.deepEqual([next.parked, heard(next)], [null, ["hello"]]);
  }));

Deno.test("attempts are counted over homes, and a class that names no policy is refused", () =>
  inMacrotask(() => {
    const solo = attached("retry").deliver(message);
    const next = new Solo(classOf("retry")).open({ entries: solo.entries, epoch: 2 }).deliver(message);
    assert.deepEqual(rejections(next).map(({ attempt }) => attempt), [2]);
    assert.equal(attached("maybe").deliver(message).parked?.code, "internal");
  }));

Deno.test("a message in whose handler the isolate ended counts as one that threw", () =>
  inMacrotask(() => {
    const killed = { kind: "reject", of: message, code: "isolate_killed", message: "it looped" } as const;
    const given = attached("reject").deliver(killed);
    assert.deepEqual([rejections(given)[0]?.attempt, receivedOf(given.entries, "reject")], [0, [1]]);
    const parked = attached("park").deliver(killed);
    assert.deepEqual([parked.parked?.code, receivedOf(parked.entries, "park")], ["handler_threw", [0]]);
    const again = attached("retry").deliver(killed);
    Talker.isBroken = false;
    again.timersDue.shift()?.();
    again.run();
    assert.deepEqual(heard(again), ["hello"]);
  }));

Deno.test("a request whose handler throws is rejected, whatever its class says: its caller is told (WT2)", () => {
  for (const policy of ["reject", "retry", "park"] as const) {
    assert.deepEqual(verdictOfThrown(policy, { kind: "request", id: "r1" }, null), { kind: "reject" });
    const other = verdictOfThrown(policy, { kind: "message", id: "p" }, null);
    assert.equal(other.kind === "reject", policy === "reject");
  }
});
