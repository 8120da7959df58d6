/** Who stays attached to a session to which as many are as may be. */
import assert from "node:assert/strict";
import { Draws } from "../../../sim/random.ts";
import { LEAVING_MAX } from "../../../../functions/sessions/attach/limits.ts";
import { HandClock, HandHome, hello, keyOf } from "./peer_pair.ts";

const MAX = 4;

/** A full home: p1 to p4, each with a line of its own. */
function full() {
  const home = new HandHome(new HandClock(), { peersMax: MAX });
  home.side.opened({ epoch: 1, peers: [], outputs: [] });
  const lines = Array.from({ length: MAX }, (_, i) => comes(home, i + 1));
  home.doneAll();
  for (const line of lines) line.heard();
  return { home, lines };
}

function comes(home: HandHome, instance: number) {
  const line = home.line();
  line.say(hello({ instance }));
  return line;
}

const detached = ({ events }: HandHome) =>
  events.flatMap((event) => event.kind === "detach" ? [event.peer] : []);

Deno.test("a full room refuses who comes while all have a channel, and nobody is sent away", () => {
  const { home, lines } = full();
  const [refused] = comes(home, 9).heard();
  assert.deepEqual(refused?.kind === "refused" && [refused.code, refused.retry], ["limit_peers", "retry"]);
  assert.deepEqual(home.events, []);
  assert.ok(lines.every(({ end }) => end.closed === null));
});

Deno.test("in a full room those who never said a thing make room first, then who is apart the longest (PR1)", () => {
  const { home, lines } = full();
  // p1 has sent a message, p3 has taken an output: both are somebody.
  lines[0]?.say({ kind: "message", sequence: 1, received: 0, payload: "m" });
  home.done({ p3: ["hi"] });
  lines[2]?.say({ kind: "ack", received: 1 });
  for (const at of [0, 3, 2, 1]) lines[at]?.reader.broken();
  const gone: string[] = [];
  for (let instance = 11; instance < 15; instance++) {
    const line = comes(home, instance);
    gone.push(...detached(home));
    home.doneAll();
    assert.equal(line.heard()[0]?.kind, "welcome");
    assert.equal(home.side.status.attached, MAX);
  }
  assert.deepEqual(gone, ["p4", "p2", "p1", "p3"]);
  assert.equal(comes(home, 15).heard()[0]?.kind, "refused");
});

Deno.test("a peer that is back has its place, and one that made room begins anew", () => {
  const { home, lines } = full();
  for (const line of lines.slice(0, 2)) line.reader.broken();
  const back = home.line();
  back.say(hello({ instance: 1, attempt: 2, identity: { id: "p1", key: keyOf("p1") } }));
  assert.equal(back.heard()[0]?.kind, "welcome");
  comes(home, 9);
  assert.deepEqual(detached(home), ["p2"]);
  const late = home.line();
  late.say(hello({ instance: 2, attempt: 2, identity: { id: "p2", key: keyOf("p2") } }));
  const [refused] = late.heard();
  assert.deepEqual(refused?.kind === "refused" && [refused.code, refused.retry], ["peer_unknown", "reset"]);
  assert.equal(back.end.closed, null);
});

Deno.test("a session that takes its time has no more peers for it (PR2)", () => {
  const { home } = full();
  for (let instance = 10; instance < 100; instance++) {
    comes(home, instance).reader.broken();
    assert.ok(home.side.status.attached <= MAX + Math.min(MAX, LEAVING_MAX));
  }
});

Deno.test("as many have a place as may, whatever they do, and nobody with a channel loses it", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const draws = new Draws(`room ${seed}`);
    const { home, lines } = full();
    const open = new Set(lines);
    for (let step = 0, instance = 100; step < 60; step++) {
      const what = draws.pick(["come", "come", "break", "done", "leave", "say"]);
      const one = open.size > 0 ? draws.pick([...open]) : undefined;
      if (what === "come") open.add(comes(home, instance++));
      else if (what === "done") {
        while (home.events.length > 0) home.done({}, draws.pick([null, null, "thrown"]));
      } else if (what === "break") one?.reader.broken();
      else if (what === "leave") one?.say({ kind: "leave", last: 0, code: 1000, reason: "" });
      else if (one !== undefined && one.heard().some(({ kind }) => kind === "welcome")) {
        one.say({ kind: "message", sequence: 1, received: 0, payload: "m" });
      }
      if (what === "break" || what === "leave") one && open.delete(one);
      for (const line of open) {
        if (line.end.closed === null) continue;
        const last = line.heard().at(-1);
        const isRight = last?.kind === "refused" && ["limit_peers", "thrown"].includes(last.code);
        assert.ok(isRight, `seed ${seed}: ${JSON.stringify(last)}`);
        open.delete(line);
      }
      const { attached } = home.side.status;
      assert.ok(attached <= 2 * MAX, `seed ${seed}: ${attached}`);
      const leaving = new Set(detached(home)).size;
      assert.ok(attached - leaving <= MAX, `seed ${seed}: ${attached} of which ${leaving} leave`);
    }
    home.doneAll();
    assert.ok(home.side.status.attached <= MAX);
  }
});

Deno.test("peers that were never attached leave no room for more", () => {
  const { home, lines } = full();
  for (const line of lines.slice(1)) line.say({ kind: "leave", last: 0, code: 1000, reason: "" });
  home.doneAll();
  for (let instance = 10; instance < 30; instance++) {
    comes(home, instance);
    home.done({}, "thrown");
  }
  for (let instance = 30; instance < 60; instance++) comes(home, instance).reader.broken();
  assert.equal(home.side.status.attached, 2 * MAX);
});
