import { strict as assert } from "node:assert";
import { Departures } from "./departures.ts";

function setUp() {
  const clock = { nowMs: 0 };
  const departures = new Departures(() => clock.nowMs);
  const client = new AbortController();
  let asked = 0;
  const request = {
    get signal() {
      asked++;
      return client.signal;
    },
  };
  return { clock, departures, client, request, asked: () => asked };
}

Deno.test("a short request's signal is never asked for", () => {
  const { clock, departures, request, asked } = setUp();
  const departure = departures.begin(request);
  clock.nowMs = 90;
  departures.look();
  departures.done(departure);
  clock.nowMs = 500;
  departures.look();
  assert.equal(asked(), 0);
});

Deno.test("a departure that is over points at none of those that wait, nor they at it (DP1)", () => {
  const { departures, request } = setUp();
  const [first, second, third] = [1, 2, 3].map(() => departures.begin(request));
  assert.ok(first && second && third);
  departures.done(second);
  assert.deepEqual([second.before === second, second.after === second], [true, true]);
  assert.deepEqual([first.after === third, third.before === first, departures.size], [true, true, 2]);
  departures.done(second);
  assert.equal(departures.size, 2);
  for (const departure of [first, third]) departures.done(departure);
  departures.close();
});

Deno.test("a client that leaves a long request is told of once; after the answer never", () => {
  const { clock, departures, client, request } = setUp();
  let told = 0;
  const waiting = departures.begin(request);
  const removed = departures.begin(request);
  const answered = departures.begin(request);
  const listener = () => void told++;
  for (const departure of [waiting, removed, answered]) departure.addEventListener("abort", listener);
  removed.removeEventListener("abort", listener);
  clock.nowMs = 150;
  departures.look();
  departures.look();
  departures.done(answered);
  client.abort();
  assert.equal(told, 1);
  assert.equal(waiting.aborted, true);
  departures.done(waiting);
  departures.done(removed);
  departures.look();
});

Deno.test("a client that had left before it was looked at is told of", () => {
  const { clock, departures, client, request } = setUp();
  let told = 0;
  const departure = departures.begin(request);
  departure.addEventListener("abort", () => told++);
  client.abort();
  clock.nowMs = 150;
  departures.look();
  assert.equal(told, 1);
  departures.done(departure);
  departures.look();
});
