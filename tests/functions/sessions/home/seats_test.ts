/** Who opens what is asked for at the arbiter's site (functions/sessions/home/seats.ts). */
import assert from "node:assert/strict";
import { Seats } from "../../../../functions/sessions/home/seats.ts";
import type { RowState } from "../../../../functions/sessions/log/asks.ts";
import { SEAT_AGAIN_MS, SEATS_ASKED_MAX, SEATS_MAX } from "../../../../functions/sessions/log/limits.ts";
import type { SiteId } from "../../../../store/model/ports.ts";

const NAME = { app: "shop", class: "cart", id: "x" };
const HERE = { to: "root", mayLeave: false };

function seating() {
  const invited: SiteId[] = [];
  const state = {
    ...{ nowMs: 0, f: 1, nearest: ["b", "c", "d"] as readonly SiteId[], row: null as RowState | null },
    ...{ agrees: (_: SiteId) => true, gone: [] as readonly SiteId[] },
  };
  const seats = new Seats({
    ...{ site: "root", nowMs: () => state.nowMs, f: () => state.f, nearest: () => state.nearest },
    gone: (site) => state.gone.includes(site) ? "gone" : "here",
    look: () =>
      Promise.resolve(
        state.row === null ? { kind: "none" } as never : { kind: "row", outcome: "granted", row: state.row },
      ),
    invite: (site) => {
      invited.push(site);
      return Promise.resolve(state.agrees(site));
    },
  });
  return { seats, state, invited };
}

const rowOf = (row: Partial<RowState>): RowState => ({
  ...{ site: "b", epoch: 3, config: 1, owners: [], version: "v", ended: false, movesTo: "", ...row },
});

Deno.test("another site opens what is asked for at the arbiter's, where enough of them live (SE1)", async () => {
  const rows: readonly (readonly [string, Partial<ReturnType<typeof seating>["state"]>, SiteId])[] = [
    ["the nearest", {}, "b"],
    ["with f = 0 none needs to", { f: 0 }, "root"],
    ["f + 1 others live", { nearest: ["b", "c"] }, "b"],
    ["fewer live", { nearest: ["b"] }, "root"],
    ["this site is no other", { nearest: ["root", "b"] }, "root"],
    ["one that keeps its log", { row: rowOf({ ended: true, owners: [{ site: "d", disk: 1 }] }) }, "d"],
    ["its home lives", { row: rowOf({ site: "c" }) }, "root"],
    ["its home is gone", { row: rowOf({ site: "c" }), gone: ["c"] }, "b"],
    ["it is on its way to one that lives", { row: rowOf({ movesTo: "d" }), gone: ["b"] }, "root"],
    ["it is on its way to one that is gone", { row: rowOf({ movesTo: "d" }), gone: ["d"] }, "b"],
  ];
  for (const [says, given, to] of rows) {
    const { seats, state } = seating();
    Object.assign(state, given);
    assert.deepEqual(await seats.opener(NAME), { to, mayLeave: false }, says);
  }
});

Deno.test("what is at home here stays, may leave when it rests, and is given to nobody (SE4)", async () => {
  for (
    const [row, mayLeave] of [
      [{ site: "root" }, true],
      [{ site: "b", movesTo: "root" }, false],
    ] as const
  ) {
    const { seats, state, invited } = seating();
    state.row = rowOf(row);
    assert.deepEqual(await seats.opener(NAME), { to: "root", mayLeave });
    assert.deepEqual(invited, []);
  }
  const { seats, state } = seating();
  state.row = rowOf({ site: "root", ended: true });
  assert.equal((await seats.opener(NAME)).to, "b", "what has ended is at home nowhere");
});

Deno.test("who was asked and did not open it is not asked again for a while, and after some it is opened here (SE3)", async () => {
  const { seats, state, invited } = seating();
  state.agrees = (site) => site !== "b";
  assert.equal((await seats.opener(NAME)).to, "c");
  assert.deepEqual(invited, ["b", "c"]);
  assert.equal(SEATS_MAX, 2);
  assert.deepEqual(await seats.opener(NAME), HERE, "two were asked, and no epoch was granted");
  state.nowMs = SEAT_AGAIN_MS - 1;
  assert.deepEqual(await seats.opener(NAME), HERE);
  state.nowMs = SEAT_AGAIN_MS;
  assert.equal((await seats.opener(NAME)).to, "c");
  state.row = rowOf({ epoch: 4, ended: true });
  assert.equal((await seats.opener(NAME)).to, "c", "an epoch was granted meanwhile");
  assert.equal((await seats.opener({ ...NAME, id: "other" })).to, "c");
  assert.deepEqual(invited.slice(2), ["b", "c", "b", "c", "b", "c"]);
});

Deno.test("of those that were asked a bounded number is remembered, the latest of them (SE3)", () => {
  const { seats } = seating();
  seats.refused(NAME, 1, "b");
  assert.equal(seats.of(NAME, 1, []), "c");
  for (let i = 0; i < SEATS_ASKED_MAX - 1; i++) seats.refused({ ...NAME, id: `${i}` }, 1, "b");
  assert.equal(seats.of(NAME, 1, []), "c");
  seats.refused({ ...NAME, id: "one more" }, 1, "b");
  assert.equal(seats.of(NAME, 1, []), "b");
});
