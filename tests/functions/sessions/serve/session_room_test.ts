/** How many may wait for a session that answers at a pace, by hand. */
import { strict as assert } from "node:assert";
import { SessionRoom } from "../../../../functions/sessions/serve/session_room.ts";

interface Crowd {
  /** What one takes of the session's time. */
  readonly eachMs: number;
  /** Answers that leave together. */
  readonly together: number;
  readonly perSecond: number;
  readonly forMs: number;
}

/** Requests come at a steady rate to an open session. @returns how long each that was taken waited, and who was not. */
function comes({ eachMs, together, perSecond, forMs }: Crowd, room = opened()) {
  const line: number[] = [], waitedMs: number[] = [];
  let begun = 0, refused = 0, doneMs = 0;
  for (let nowMs = 0; nowMs < forMs || line.length > 0; nowMs++) {
    for (; nowMs < forMs && begun < nowMs * perSecond / 1_000; begun++) {
      if (!room.isFor(line.length, nowMs)) refused++;
      else {
        if (line.length === 0) doneMs = nowMs;
        line.push(nowMs);
        room.came(line.length, nowMs);
      }
    }
    for (; line.length > 0 && nowMs >= doneMs + eachMs * Math.min(together, line.length);) {
      const leaving = line.splice(0, together);
      doneMs += eachMs * leaving.length;
      for (const [i, cameMs] of leaving.entries()) {
        waitedMs.push(nowMs - cameMs);
        room.answered(line.length + leaving.length - i - 1, nowMs);
      }
    }
  }
  waitedMs.sort((a, b) => a - b);
  return {
    served: waitedMs.length,
    refused,
    p50Ms: waitedMs[waitedMs.length >> 1] ?? 0,
    mostMs: waitedMs.at(-1) ?? 0,
  };
}

function opened(): SessionRoom {
  const room = new SessionRoom();
  room.opened(0, 0);
  return room;
}

for (const [eachMs, together] of [[5, 1], [10, 1], [30, 1], [5, 20], [1, 1]] as const) {
  Deno.test(`at ten times what a session can do, ${eachMs} ms each, ${together} together, those who are taken wait half a second`, () => {
    const crowd = { eachMs, together, perSecond: 10_000 / eachMs, forMs: 10_000 };
    const { served, refused, p50Ms, mostMs } = comes(crowd);
    assert.ok(p50Ms <= 600 && mostMs <= 2_000, `${p50Ms}, ${mostMs} ms`);
    assert.ok(served >= 0.95 * crowd.forMs / eachMs, `it has always something to do: ${served}`);
    assert.ok(refused > 8 * served, `${refused}`);
  });
}

Deno.test("what a session can do it does, and nobody is refused", () => {
  for (const [eachMs, together] of [[0.5, 1], [5, 1], [5, 20], [400, 1]] as const) {
    const { refused } = comes({ eachMs, together, perSecond: 900 / eachMs, forMs: 10_000 });
    assert.equal(refused, 0, `${eachMs} ms each`);
  }
});

Deno.test("a few may wait for handlers that take seconds (WL1)", () => {
  const room = opened();
  const slow = comes({ eachMs: 5_000, together: 1, perSecond: 1, forMs: 30_000 }, room);
  assert.ok(slow.served >= 16 + 5 && slow.mostMs <= 16 * 5_000, `${slow.served}, ${slow.mostMs} ms`);
  assert.ok(slow.refused > 0);
  assert.ok(room.isFor(15, 100_000));
});

Deno.test("a pace of before does not stay: a crowd that is served sooner is taken", () => {
  const room = opened();
  comes({ eachMs: 30, together: 1, perSecond: 300, forMs: 3_000 }, room);
  assert.ok(!room.isFor(200, 3_000));
  room.came(16, 3_100);
  assert.ok(!room.isFor(200, 3_100), "it is as slow as a moment ago, as far as is known");
  for (let waiting = 299, nowMs = 3_100; waiting > 0; waiting--) room.answered(waiting, nowMs += 2);
  assert.ok(room.isFor(200, 3_700), "it was not");
  comes({ eachMs: 30, together: 1, perSecond: 300, forMs: 3_000 }, room);
  room.came(16, 100_000);
  assert.ok(room.isFor(200, 100_000), "it was, and long ago");
});

Deno.test("a crowd that comes to a session whose pace is not known is let in no faster than it is answered (WL1)", () => {
  for (const firstMs of [20, 300, 900]) { // until its first answer
    const room = opened();
    let waiting = 0;
    for (let nowMs = 1; nowMs <= 2_000; nowMs++) { // one comes each ms, one is answered each 20 ms
      if (room.isFor(waiting, nowMs)) room.came(++waiting, nowMs);
      if (nowMs >= firstMs && nowMs % 20 === 0 && waiting > 0) room.answered(--waiting, nowMs);
    }
    assert.ok(waiting <= 100, `${waiting} waited, ${20 * waiting} ms`);
  }
  const far = opened(); // answers come together, from owners far away
  let waiting = 0, refused = 0;
  for (let nowMs = 1; nowMs <= 3_000; nowMs++) {
    if (!far.isFor(waiting, nowMs)) refused++;
    else far.came(++waiting, nowMs);
    if (nowMs % 150 === 0) { while (waiting > 0) far.answered(--waiting, nowMs); }
  }
  assert.ok(refused <= 50, `${refused} were refused, all before the first answer`);
});

Deno.test("a session that answers in bursts takes no more than it answers on the whole (WL1)", () => {
  const room = opened(), waitedMs: number[] = [], line: number[] = [];
  for (let nowMs = 0; nowMs < 30_000; nowMs++) { // 400 come a second, 40 are answered, all of them within a quarter of it
    if (nowMs % 5 < 2 && room.isFor(line.length, nowMs)) {
      line.push(nowMs);
      room.came(line.length, nowMs);
    }
    if (nowMs % 1_000 < 750 || nowMs % 6 > 0) continue;
    waitedMs.push(nowMs - (line.shift() ?? nowMs));
    room.answered(line.length, nowMs);
  }
  const late = waitedMs.slice(-400).sort((a, b) => a - b);
  assert.ok((late[200] ?? Infinity) <= 1_100, `half of them waited ${late[200]} ms`);
});

Deno.test("a burst waits where the session is being opened, up to a number (WL2)", () => {
  const room = new SessionRoom();
  for (let waiting = 0; waiting < 1_000; waiting++) {
    assert.ok(room.isFor(waiting, waiting * 100));
    room.came(waiting + 1, waiting * 100);
  }
  assert.ok(!room.isFor(1_000, 0));
  room.opened(500, 200_000);
  assert.ok(room.isFor(500, 200_050), "it has just been opened");
  assert.ok(!room.isFor(500, 200_500), "nothing was answered since");
  room.closed();
  assert.ok(room.isFor(500, 300_000));
});
