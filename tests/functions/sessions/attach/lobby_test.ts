/** Hosts that an opening asks for the log (functions/sessions/attach/lobby.ts). */
import assert from "node:assert/strict";
import { encodeSummary } from "../../../../functions/sessions/sealed/mod.ts";
import { HandClock, HandHome, hello, keyOf } from "./peer_pair.ts";

const identity = (id: string) => ({ id, key: keyOf(id) });

/** A home that is being opened, and a host on record that says hello to it. */
function asked(isForced: boolean) {
  const opened: number[] = [];
  const home = new HandHome(new HandClock(), {
    openLog: (_, records) => {
      opened.push(records.length);
      return { ok: false, code: "log_forged", message: "it does not open" };
    },
  });
  let answers: unknown = null;
  void home.side.ask({ epoch: 7, hosts: ["p1", "p2"], withinMs: 500, isForced }).then((all) => answers = all);
  const line = home.line();
  line.say(
    hello({
      identity: identity("p1"),
      epoch: 3,
      received: 0,
      log: encodeSummary({ promised: 3, tag: null }),
    }),
  );
  assert.deepEqual(line.heard(), [{ kind: "fence", epoch: 7 }]);
  const later = async () => {
    home.clock.turn(600);
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    return answers;
  };
  return { home, line, later, opened };
}

Deno.test("a host that has promised a later epoch ends an opening, but not one without those that do not come back", async () => {
  for (const isForced of [false, true]) {
    const { line, later } = asked(isForced);
    line.say({ kind: "log", epoch: 7, records: null });
    assert.deepEqual(await later(), isForced ? new Map() : "superseded");
  }
});

Deno.test("a host gives its log once for each time that it is asked", () => {
  const { line, opened } = asked(false);
  line.say({ kind: "log", epoch: 6, records: [new Uint8Array(20)] });
  assert.deepEqual([opened, line.end.closed], [[], null], "of an opening before");
  line.say({ kind: "log", epoch: 7, records: [new Uint8Array(20)] });
  assert.deepEqual([opened, line.heard()[0]?.kind, line.end.closed], [[], "refused", 4000]);
});

Deno.test("who has not the key of a host is not asked for its log, and what he gives counts for nothing (LB1)", async () => {
  const { home, line, later, opened } = asked(false);
  const stranger = home.line();
  const log = encodeSummary({ promised: 3, tag: null });
  stranger.say(hello({ identity: { id: "p2", key: keyOf("p3") }, epoch: 3, received: 0, log }));
  assert.deepEqual(stranger.heard(), []);
  stranger.say({ kind: "log", epoch: 7, records: [] });
  line.say({ kind: "log", epoch: 7, records: [] });
  assert.deepEqual([await later(), opened], [new Map([["p1", null]]), []]);
});
