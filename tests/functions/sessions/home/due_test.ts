/** When a stateful session that nobody runs is to be opened, and by whom (functions/sessions/home/due.ts). */
import assert from "node:assert/strict";
import { Due } from "../../../../functions/sessions/home/due.ts";
import type { LogNews } from "../../../../functions/sessions/log/ports.ts";
import type { SiteId } from "../../../../store/model/ports.ts";

const NOW = 1_000_000;
const NAME = { app: "shop", class: "cart", id: "x" };
const WRITTEN = { kind: "written" } as unknown as LogNews, GONE = { kind: "gone" } as LogNews;

/** Site a, whose logs are at home where `state` says. */
function looking() {
  const happened: string[] = [];
  const state = {
    whose: "a" as SiteId | null,
    recorded: "a" as SiteId | null,
    lost: [] as SiteId[],
    nowMs: NOW,
  };
  const due = new Due({
    site: "a",
    whose: () => state.whose,
    recorded: () => Promise.resolve(state.recorded),
    isLost: (site) => state.lost.includes(site),
    open: ({ id }) => void happened.push(`open ${id}`),
    tell: (site, { id }) => void happened.push(`tell ${site} ${id}`),
  });
  const changed = (log: { wakeAtMs?: number; open?: number; id?: string }, news: LogNews | null = WRITTEN) =>
    due.changed(
      { name: { ...NAME, id: log.id ?? "x" }, wakeAtMs: log.wakeAtMs ?? 0, open: log.open ?? 0 },
      news,
      state.nowMs,
    );
  /** Time passes, in which it looks every second: when something happened. */
  const pass = async (s: number): Promise<string[]> => {
    const found: string[] = [];
    for (let i = 0; i < s; i++) {
      state.nowMs += 1_000;
      due.tick(state.nowMs);
      for (let turn = 0; turn < 4; turn++) await Promise.resolve();
      found.push(...happened.splice(0).map((what) => `${(state.nowMs - NOW) / 1_000} ${what}`));
    }
    return found;
  };
  return { due, state, changed, pass, happened };
}

Deno.test("one that rests here is opened when its timer is due, and that is said again where it is not (D1, D2)", async () => {
  const { changed, pass } = looking();
  changed({ wakeAtMs: NOW + 5_000 });
  assert.deepEqual(await pass(4), []);
  assert.deepEqual(await pass(12), ["5 open x", "10 open x", "15 open x"]);
  changed({ wakeAtMs: NOW + 30_000 });
  assert.deepEqual(await pass(13), []);
  assert.deepEqual(await pass(2), ["30 open x"]);
  changed({});
  assert.deepEqual(await pass(30), [], "nothing is to be done");
  changed({ wakeAtMs: NOW + 61_000 });
  changed({ wakeAtMs: NOW + 61_000, open: 1 }, GONE);
  assert.deepEqual(await pass(30), [], "it is gone");
});

Deno.test("who has it open looks after that itself, and what the arbiter does not say is left alone (D1)", async () => {
  for (const [whose, recorded] of [[null, "a"], ["a", null], ["b", "b"]] as const) {
    const { state, changed, pass } = looking();
    Object.assign(state, { whose, recorded });
    changed({ wakeAtMs: NOW + 1_000 });
    assert.deepEqual(await pass(4), [], `${whose} ${recorded}`);
  }
  const { state, changed, pass } = looking();
  Object.assign(state, { whose: "b", recorded: "b" });
  changed({ wakeAtMs: NOW + 1_000 });
  await pass(3);
  Object.assign(state, { whose: "a", lost: ["b"] }); // it is lost
  assert.deepEqual((await pass(5)).map((what) => what.split(" ")[1]), ["open"]);
});

Deno.test("the home on record is told of what is late, less and less often (D3)", async () => {
  const { state, changed, pass } = looking();
  Object.assign(state, { whose: "b", recorded: "b" });
  changed({ wakeAtMs: NOW + 1_000 });
  assert.deepEqual(await pass(250), [6, 11, 21, 41, 81, 161, 241].map((s) => `${s} tell b x`));
  const here = looking();
  here.state.recorded = "a"; // it never opened what it became the home of
  here.changed({ wakeAtMs: NOW + 1_000 });
  assert.deepEqual(await here.pass(8), ["1 open x", "6 open x"]);
  const lost = looking();
  Object.assign(lost.state, { whose: "a", recorded: "b", lost: ["b"] });
  lost.changed({ wakeAtMs: NOW + 1_000 });
  assert.deepEqual(await lost.pass(8), ["1 open x", "6 open x"], "nobody is there to be told");
});

Deno.test("work is due at the start, and when the log has been as it is for a while (D2, D4)", async () => {
  const begun = looking();
  begun.changed({ open: 1 }, null);
  assert.deepEqual(await begun.pass(40), [1, 6, 16, 36].map((s) => `${s} open x`));
  const running = looking();
  running.changed({ open: 1 });
  assert.deepEqual(await running.pass(9), []);
  running.changed({ open: 2 }); // a commit
  assert.deepEqual(await running.pass(9), []);
  assert.deepEqual(await running.pass(7), ["19 open x", "24 open x"]);
  running.changed({ open: 3 });
  assert.deepEqual(await running.pass(9), [], "it begins anew");
  assert.deepEqual(await running.pass(3), ["35 open x"]);
  running.changed({ open: 0 });
  assert.deepEqual(await running.pass(60), []);
  const others = looking();
  Object.assign(others.state, { whose: "b", recorded: "b" });
  others.changed({ open: 1 });
  assert.deepEqual(await others.pass(200), [45, 85, 165].map((s) => `${s} tell b x`), "when it is late");
});

Deno.test("a timer that comes before the work is due is called at its time, and both are as they were after other news (D4)", async () => {
  const { changed, pass } = looking();
  changed({ open: 1, wakeAtMs: NOW + 3_000 });
  assert.deepEqual(await pass(4), ["3 open x"]);
  const later = looking();
  later.changed({ open: 1, wakeAtMs: NOW + 60_000 });
  later.changed({ open: 1, wakeAtMs: NOW + 2_000 });
  assert.deepEqual(await later.pass(4), ["2 open x"]);
});

Deno.test("a clock that was ahead and is right again leaves nothing waiting for the time that it showed (D5)", async () => {
  const YEAR_MS = 365 * 86_400_000;
  const timer = looking();
  timer.changed({ wakeAtMs: NOW + 20_000 });
  await timer.pass(2);
  timer.state.nowMs += YEAR_MS;
  assert.equal((await timer.pass(1)).length, 1, "it looks due");
  timer.state.nowMs -= YEAR_MS;
  assert.deepEqual(await timer.pass(16), []);
  assert.deepEqual(await timer.pass(7), ["20 open x", "25 open x"]);
  // Who asked for it, or wrote it, looks at it between two ticks.
  const work = looking();
  await work.pass(1);
  work.state.nowMs += YEAR_MS;
  work.changed({ open: 1 });
  work.state.nowMs -= YEAR_MS;
  assert.deepEqual(await work.pass(16), ["12 open x", "17 open x"]);
  const late = looking();
  late.changed({ open: 1 }, null);
  assert.deepEqual(await late.pass(6), ["1 open x", "6 open x"]);
  late.state.nowMs += YEAR_MS;
  await late.pass(1);
  late.state.nowMs -= YEAR_MS;
  assert.deepEqual(await late.pass(40), ["28 open x"]);
  const slow = looking();
  slow.changed({ wakeAtMs: NOW + 1_000 });
  await slow.pass(1);
  slow.state.nowMs -= 900;
  assert.deepEqual((await slow.pass(6)).length, 1, "less makes it wait by as much");
});

Deno.test("a burst of what is due is spread, and what others have open makes none wait", async () => {
  const { changed, pass, state } = looking();
  for (let i = 0; i < 250; i++) changed({ id: `${i}`, wakeAtMs: NOW + 1_000 });
  assert.deepEqual([(await pass(1)).length, (await pass(1)).length, (await pass(1)).length], [100, 100, 50]);
  state.whose = null;
  for (let i = 0; i < 300; i++) changed({ id: `open ${i}`, wakeAtMs: NOW + 4_000 });
  assert.deepEqual(await pass(1), []);
});
