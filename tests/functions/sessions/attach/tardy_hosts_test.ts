/** Hosts that do not take what they are sent: how often others wait for one, and for how long it is none. */
import assert from "node:assert/strict";
import { Remembered } from "../../../../functions/sessions/attach/mod.ts";
import { TardyHosts } from "../../../../functions/sessions/attach/tardy_hosts.ts";
import { encodeSummary } from "../../../../functions/sessions/sealed/mod.ts";
import { tag } from "../../../../functions/sessions/attach/frame_bytes.ts";
import { HandClock, HandFeeds, HandHome, hello, keyOf } from "./peer_pair.ts";

const MINUTE = 60_000;

Deno.test("who was late once is a host again, then for longer and longer not, and begins anew after a long time (TH1, TH3)", () => {
  const clock = new HandClock(), tardy = new TardyHosts(() => clock.nowMs());
  tardy.begins("a");
  clock.turn(5 * MINUTE); // no newcomer
  const late = (id: string) => {
    tardy.late(id);
    return tardy.outMs(id);
  };
  assert.equal(late("a"), 0);
  const outs: number[] = [];
  for (let i = 0; i < 9; i++) {
    clock.turn(5_000);
    outs.push(late("a"));
    clock.turn(outs.at(-1) ?? 0);
    assert.equal(tardy.outMs("a"), 0);
  }
  assert.deepEqual(outs, [15, 30, 60, 120, 240, 480, 900, 900, 900].map((s) => s * 1_000));
  clock.turn(31 * MINUTE);
  assert.equal(late("a"), 0, "it was long ago");
});

Deno.test("newcomers that are late count for all of them, others for themselves (TH2, TH3)", () => {
  const clock = new HandClock(), tardy = new TardyHosts(() => clock.nowMs());
  for (const id of ["a", "b"]) tardy.begins(id);
  clock.turn(2 * MINUTE);
  for (const id of ["c", "d"]) {
    tardy.begins(id);
    clock.turn(3_000);
    tardy.late(id);
    clock.turn(3_000);
    tardy.gone(id); // and it comes back under another id
  }
  assert.deepEqual(["a", "b", "e"].map((id) => tardy.outMs(id) > 0), [false, false, true]);
  tardy.late("a");
  assert.equal(tardy.outMs("a") > 0, true, "it is to show itself as any other");
  assert.equal(tardy.outMs("b"), 0);
  clock.turn(15_000);
  assert.deepEqual(["a", "e"].map((id) => tardy.outMs(id)), [0, 0]);
  clock.turn(40 * MINUTE);
  for (const id of ["f", "g", "h"]) tardy.late(id); // all at once: somebody's network
  assert.equal(tardy.outMs("i"), 0);
});

Deno.test("a client that comes, takes nothing, and goes is no host after a while, also where nobody else is attached (TH2)", () => {
  const clock = new HandClock(), remembered = new Remembered(() => clock.nowMs());
  const waited: number[] = [];
  for (let time = 0; time < 10; time++) {
    const home = new HandHome(clock, { remembered, newId: () => `p${time}` }), feeds = new HandFeeds();
    home.side.opened({ ...{ epoch: 1, peers: [], outputs: [] }, ahead: { feeds, released: 0, asked: [] } });
    const line = home.line();
    line.say(hello({ log: encodeSummary({ promised: 0, tag: null }) }));
    home.done();
    if (feeds.attached.length > 0) waited.push(time);
    feeds.lacks.add(`p${time}`);
    feeds.records = [Uint8Array.of(1)];
    feeds.last = 1;
    home.side.appended({ entry: 1, outputs: [{ to: `p${time}`, sequence: 1, bytes: tag("o") }] });
    home.side.hostsChanged();
    clock.turn(4_500);
    home.side.over(null); // it has left, and nobody is there
  }
  assert.deepEqual(waited, [0, 1, 6]);
});

Deno.test("nobody waits again and again for a host that does not take what it is sent (PR4)", () => {
  const home = new HandHome(new HandClock()), feeds = new HandFeeds();
  home.side.opened({
    ...{ epoch: 1, outputs: [], ahead: { feeds, released: 0, asked: [] } },
    peers: [{ kind: "client", id: "p", sent: 0, received: 0, isClosed: false }],
  });
  let attempt = 0;
  const comes = () => {
    const line = home.line();
    const log = encodeSummary({ promised: 0, tag: null });
    line.say(hello({ identity: { id: "p", key: keyOf("p") }, attempt: ++attempt, log }));
    return line;
  };
  const sent = () => {
    feeds.last++;
    feeds.records = [Uint8Array.of(1)];
    home.side.appended({ entry: feeds.last, outputs: [{ to: "p", sequence: feeds.last, bytes: tag("o") }] });
    home.side.hostsChanged();
  };
  let line = comes();
  assert.deepEqual(feeds.attached, ["p"]);
  feeds.lacks.add("p");
  sent();
  home.clock.turn(4_000);
  assert.deepEqual(feeds.lates.splice(0), ["p"], "it may take what it lacks, and is a host again");
  home.clock.turn(2_000);
  sent();
  home.clock.turn(4_000);
  assert.deepEqual(feeds.lates.splice(0), ["p, out"]);
  feeds.lacks.delete("p");
  home.clock.turn(10_000);
  assert.deepEqual(feeds.lates, []);
  line.reader.broken();
  line = comes();
  assert.deepEqual(feeds.attached, [], "nor by a channel that it opens anew");
  home.clock.turn(4_900);
  assert.deepEqual(feeds.attached, []);
  home.clock.turn(200);
  assert.deepEqual(feeds.attached, ["p"], "after a while it is asked to be one");
  assert.equal(line.end.closed, null);
  home.side.over(null);
});
