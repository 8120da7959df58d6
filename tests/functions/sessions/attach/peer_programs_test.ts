/** Programs that speak for one peer at its home (docs/protocol/session-frames.md): who has it, and who is told what. */
import assert from "node:assert/strict";
import { HandClock, HandFeeds, HandHome, hello, keyOf } from "./peer_pair.ts";
import { encodeSummary } from "../../../../functions/sessions/sealed/mod.ts";

const identity = (id: string) => ({ id, key: keyOf(id) });
const nobody = { epoch: 1, peers: [], outputs: [] };
const message = (sequence: number, payload = "m") =>
  ({ kind: "message", sequence, received: 0, payload }) as const;
const kinds = (events: readonly { readonly kind: string }[]) => events.map(({ kind }) => kind);

/** A home with one peer, p1, on a line by hand. */
function attached() {
  const home = new HandHome();
  home.side.opened(nobody);
  const line = home.line();
  line.say(hello());
  home.done();
  line.heard();
  return { home, line };
}

Deno.test("a peer taken over by another program is told, and does not take it back", () => {
  const { home, line } = attached();
  const second = home.line();
  second.say(hello({ identity: identity("p1"), instance: 2 }));
  assert.equal(second.heard()[0]?.kind, "welcome");
  const [told] = line.heard();
  assert.deepEqual(told?.kind === "refused" && [told.code, told.retry], ["superseded", "fix"]);
  const third = home.line();
  third.say(hello({ identity: identity("p1"), instance: 1, attempt: 7 }));
  const [again] = third.heard();
  assert.deepEqual(again?.kind === "refused" && [again.code, again.retry], ["superseded", "fix"]);
  second.say(message(1));
  assert.deepEqual(kinds(home.events), ["message"]);
});

/** The attempt of so many a channel of so many a program. */
const attemptOf = (program: number, channel = 1) => program * 2 ** 24 + channel;

Deno.test("an older program of a peer, late on its way, does not keep it from a newer one", () => {
  const { home } = attached();
  const newer = home.line();
  newer.say(hello({ identity: identity("p1"), instance: 2, attempt: attemptOf(2) }));
  newer.heard();
  const older = home.line();
  older.say(hello({ identity: identity("p1"), instance: 3, attempt: attemptOf(1, 9) }));
  assert.equal(
    older.heard()[0]?.kind,
    "welcome",
    "it may be that the newer one is dead, and nobody knows yet",
  );
  assert.deepEqual(newer.heard(), [{ kind: "moved", site: null }]);
  const back = home.line();
  back.say(hello({ identity: identity("p1"), instance: 2, attempt: attemptOf(2, 2) }));
  assert.equal(back.heard()[0]?.kind, "welcome", "who lives comes again");
  const again = home.line();
  again.say(hello({ identity: identity("p1"), instance: 3, attempt: attemptOf(1, 10) }));
  for (const each of [older, again]) {
    const [told] = each.heard();
    assert.deepEqual(told?.kind === "refused" && [told.code, told.retry], ["superseded", "fix"]);
  }
  back.say(message(1));
  assert.deepEqual(kinds(home.events), ["message"]);
});

Deno.test("a newer program whose channel broke takes its peer back from an older one", () => {
  const { home } = attached();
  const newer = home.line();
  newer.say(hello({ identity: identity("p1"), instance: 2, attempt: attemptOf(2) }));
  newer.reader.broken();
  const older = home.line();
  older.say(hello({ identity: identity("p1"), instance: 3, attempt: attemptOf(1) }));
  assert.equal(older.heard()[0]?.kind, "welcome");
  const back = home.line();
  back.say(hello({ identity: identity("p1"), instance: 2, attempt: attemptOf(2, 2) }));
  assert.equal(back.heard()[0]?.kind, "welcome");
  const [told] = older.heard();
  assert.deepEqual(told?.kind === "refused" && [told.code, told.retry], ["superseded", "fix"]);
});

for (
  const [which, has, comes] of [
    ["the next program", attemptOf(1), attemptOf(2)],
    ["another one of the same number", attemptOf(2, 7), attemptOf(2)],
    ["one without a number", attemptOf(2), 1],
    ["one with a number after one without", 7, attemptOf(1)],
  ] as const
) {
  Deno.test(`of two programs of one peer the one that says hello later has it: ${which}`, () => {
    const { home } = attached();
    const first = home.line(), second = home.line(), third = home.line();
    first.say(hello({ identity: identity("p1"), instance: 2, attempt: has }));
    first.heard();
    second.say(hello({ identity: identity("p1"), instance: 3, attempt: comes }));
    third.say(hello({ identity: identity("p1"), instance: 2, attempt: has + 1 }));
    assert.deepEqual(kinds(second.heard()), ["welcome"]);
    for (const each of [first, third]) {
      const [told] = each.heard();
      assert.deepEqual(told?.kind === "refused" && [told.code, told.retry], ["superseded", "fix"]);
    }
  });
}

/** A home on whose record p1 is, which has one output; a line of p1's, and hellos of its programs. */
function onRecord() {
  const home = new HandHome(new HandClock()), feeds = new HandFeeds();
  home.side.opened({ ...nobody, ahead: { feeds, released: 0, asked: [] } });
  const log = encodeSummary({ promised: 0, tag: null }), line = home.line();
  line.say(hello({ log }));
  home.done({ p1: ["one"] });
  line.say({ kind: "ack", received: 1 });
  line.heard();
  feeds.awaited.add("p1");
  const comes = (instance: number, received: number, attempt = 1) => {
    const line = home.line();
    line.say(hello({ instance, attempt, received, identity: identity("p1"), epoch: 1, log }));
    return line;
  };
  const offRecord = () => {
    feeds.awaited.delete("p1");
    home.side.hostsChanged();
  };
  const codes = (one: typeof line) => one.heard().map((frame) => "code" in frame ? frame.code : frame.kind);
  return { line, comes, offRecord, codes };
}

Deno.test("a host whose program comes back with what it had long ago is told so when it is off the record", () => {
  const { line, comes, offRecord, codes } = onRecord();
  line.reader.broken();
  const back = comes(2, 0);
  assert.deepEqual([back.heard(), back.end.closed], [[], null]);
  offRecord();
  assert.deepEqual(codes(back), ["peer_behind"]);
});

Deno.test("who comes back with what it had long ago keeps it while nobody knows that its channel before is dead", () => {
  const { line, comes, offRecord, codes } = onRecord();
  const back = comes(2, 0);
  assert.deepEqual([back.heard(), back.end.closed], [[], null]);
  assert.deepEqual(line.heard(), [{ kind: "moved", site: null }], "whoever lives comes again");
  offRecord();
  assert.deepEqual(codes(back), ["peer_behind"]);
});

Deno.test("who comes with what another program of its peer had long ago is told so when that one holds the log", () => {
  const { comes, codes } = onRecord();
  const other = comes(2, 0);
  const first = comes(1, 1, 2);
  assert.deepEqual([codes(first), codes(other)], [["welcome"], []], "it may have lost what it held");
  first.say({ kind: "taken", records: 1 });
  assert.deepEqual([codes(other), first.end.closed], [["peer_behind"], null]);
});
