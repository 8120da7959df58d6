import assert from "node:assert/strict";
import type { Reply, RowState } from "../log/asks.ts";
import { SEAT_AGAIN_MS } from "../log/limits.ts";
import { Seats } from "./seats.ts";

const NAME = { app: "shop", class: "cart", id: "ann" };
const rowAt = (site: string, rest: Partial<RowState> = {}): RowState => ({
  ...{ site, epoch: 3, config: 1, version: "v1", ended: false, movesTo: "" },
  owners: [{ site, disk: 1 }, { site: "b", disk: 2 }],
  ...rest,
});

/** The root's, with three sites of which `a` is the nearest. */
function seats(options: { f?: number; living?: string[]; row?: RowState | null; gone?: string[] } = {}) {
  const invited: string[] = [];
  const state = { row: options.row ?? null, nowMs: 0, declines: new Set<string>() };
  const made = new Seats({
    site: "root",
    nowMs: () => state.nowMs,
    f: () => options.f ?? 1,
    nearest: () => options.living ?? ["a", "b", "c"],
    gone: (site) => options.gone?.includes(site) ? "gone" : "here",
    look: () => Promise.resolve<Reply>({ kind: "row", outcome: "granted", row: state.row }),
    invite: (site) => {
      invited.push(site);
      return Promise.resolve(!state.declines.has(site));
    },
  });
  return { seats: made, invited, state };
}

Deno.test("what is new at the root is opened at the nearest site, where f + 1 others live (SE1)", async () => {
  const opener = (options: Parameters<typeof seats>[0]) => seats(options).seats.opener(NAME);
  assert.deepEqual(await opener({}), { to: "a", mayLeave: false });
  assert.deepEqual(await opener({ living: ["root", "c", "b"] }), { to: "c", mayLeave: false });
  for (const few of [{ living: ["a"] }, { living: [] }, { f: 2, living: ["a", "b"] }, { f: 0 }]) {
    assert.deepEqual(await opener(few), { to: "root", mayLeave: false }, JSON.stringify(few));
  }
});

Deno.test("what has lost its home is opened by one that keeps its log, and what has one is left there (SE1)", async () => {
  const opener = (options: Parameters<typeof seats>[0]) => seats(options).seats.opener(NAME);
  assert.deepEqual(await opener({ row: rowAt("c"), gone: ["c"], living: ["a", "b"] }), {
    to: "b",
    mayLeave: false,
  });
  // The arbiter says so to whoever asks to become the home.
  assert.deepEqual(await opener({ row: rowAt("c") }), { to: "root", mayLeave: false });
  assert.deepEqual(await opener({ row: rowAt("c", { ended: true }) }), { to: "b", mayLeave: false });
});

Deno.test("what is at home at the root may leave, and what is moved there stays (SE4)", async () => {
  assert.deepEqual(await seats({ row: rowAt("root") }).seats.opener(NAME), { to: "root", mayLeave: true });
  const moving = seats({ row: rowAt("c", { movesTo: "root" }) });
  assert.deepEqual(await moving.seats.opener(NAME), { to: "root", mayLeave: false });
  assert.deepEqual(moving.invited, []);
});

Deno.test("who was asked and did not open it is not asked again; after two it is the root (SE3)", async () => {
  const { seats: one, invited, state } = seats();
  const to = async () => (await one.opener(NAME)).to;
  assert.deepEqual([await to(), await to(), await to()], ["a", "b", "root"]);
  assert.deepEqual(invited, ["a", "b"]);
  state.nowMs += SEAT_AGAIN_MS;
  assert.equal(await to(), "a");
  // It was opened, and has ended since: that is another time.
  state.row = rowAt("a", { epoch: 1, ended: true });
  assert.equal(await to(), "a", "an epoch was granted since");
  state.row = rowAt("a", { epoch: 2, ended: true });
  assert.equal(await to(), "a");
});

Deno.test("a site that declines is not waited for: another is asked at once (SE3)", async () => {
  const { seats: one, invited, state } = seats();
  state.declines.add("a");
  assert.equal((await one.opener(NAME)).to, "b");
  state.declines.add("b");
  const { seats: other, state: its } = seats();
  its.declines = state.declines;
  assert.equal((await other.opener(NAME)).to, "root");
  assert.deepEqual(invited, ["a", "b"]);
});
