/** What becomes of a token, decided at once from what a site has (store/session/handoff.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import { Core } from "../../../store/core/core.ts";
import { OlderDisk } from "../../../store/core/lost.ts";
import {
  awayKey,
  encodeJson,
  endedKey,
  GAPS_KEY,
  keptKey,
  removedKey,
  replicaKey,
} from "../../../store/members/topology.ts";
import { recoveredKey, wardsKey } from "../../../store/members/configuration.ts";
import { Gaps } from "../../../store/model/gaps.ts";
import type { Key } from "../../../store/model/key.ts";
import { CLOCK_AHEAD_MS_MAX, LEFT_MS } from "../../../store/model/limits.ts";
import { CLOCK_TICKS_PER_MS, type Position } from "../../../store/model/row.ts";
import { Handoff } from "../../../store/session/handoff.ts";
import type { Wards } from "../../../store/wards/wards.ts";
import { START_MS, World } from "../../sim/world.ts";

/** Incarnations, and clocks, of a tree: b with d and s below it, c with far below it. */
const ROOT = 1, B = 10, C = 11, HERE = 20, S = 30, FAR = 40, NEXT = 50;
/** Of d: how far the journals of the root and of b have come here, their stable clocks, and where its own ends. */
const ROOT_DOWN = 100,
  DOWN = [ROOT_DOWN, 200],
  STABLE = [5_000, 6_000],
  HEAD = 300;
/** What the site's own journal, and the root's, have left out. */
const OWN_GAP = { from: 250, to: 270, clock: 900, atMs: 0 },
  ROOT_GAP = { from: 60, to: 80, clock: 700, atMs: 0 };
const OWN_STABLE = 7_000;

type At = "d" | "root";

function arriving(at: At = "d") {
  const world = new World(), failures: unknown[] = [], noted: string[] = [];
  const core = new Core(
    { site: at, parent: at === "root" ? null : "b", tier: "", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => START_MS + world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, callback) => world.after(ms, callback),
        turn: () => world.sleep(0),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => void failures.push(error),
      note: (event) => void noted.push(event),
    },
  );
  const write = (key: Key, value: unknown, by: { clock?: number; replica?: number } = {}) =>
    core.rows.put({ ...core.own(key, encodeJson(value)), ...by });
  const stands = (number: number, path: readonly string[], parent: number, from = 0) =>
    write(replicaKey(number), { site: path.at(-1), path, parent, from });
  stands(ROOT, ["root"], 0);
  stands(B, ["root", "b"], ROOT);
  stands(C, ["root", "c"], ROOT);
  stands(HERE, ["root", "b", "d"], B);
  stands(S, ["root", "b", "s"], B);
  stands(FAR, ["root", "c", "far"], C);
  core.replica = at === "root" ? ROOT : HERE;
  core.setPath(at === "root" ? [] : ["root", "b"]);
  if (at === "d") {
    core.down = DOWN;
    core.stable = STABLE;
  }
  write(GAPS_KEY, [ROOT_GAP]);
  core.gaps = new Gaps([at === "root" ? ROOT_GAP : OWN_GAP]);
  core.rows.resumeAt(HEAD);
  const host = { stableOwn: () => OWN_STABLE, eager: () => {}, ahead: () => {} };
  const handoff = new Handoff(core, { ...host, wards: {} as Wards });
  const pass = (ms: number) => world.run(world.nowMs + ms);
  return { core, handoff, failures, noted, write, stands, pass };
}

type Arriving = ReturnType<typeof arriving>;

const LOST_ABOVE = "open, of what this site was before, and it may have seen what was lost above that";

const tokenOf = (token: Partial<TokenState>): TokenState => ({
  ...{ session: new Uint8Array(16), sequence: 3, replica: S, clock: 9_000, path: [90, 190, 77], open: false },
  ...token,
});

/** What it says at once, and the session's path here. */
async function outcome({ handoff }: Arriving, token: TokenState): Promise<readonly unknown[]> {
  try {
    const arrival = handoff.arrive(token, "");
    if (!(arrival instanceof Promise)) return [arrival.how, arrival.path];
    arrival.catch(() => {}); // nobody answers
    await Promise.resolve();
    return ["asks"];
  } catch (error) {
    assert.ok(error instanceof StoreUnavailable);
    return [error.code];
  }
}

interface Case {
  readonly says: string;
  readonly token: Partial<TokenState>;
  readonly at?: At;
  readonly given?: (all: Arriving) => void;
  readonly expect: readonly [string, (readonly (Position | null)[])?];
}

const ended = (number: number, more: Record<string, unknown> = {}, stable = 4_000) => ({ write }: Arriving) =>
  write(endedKey(number), { stable, ...more });
/** It goes on as NEXT, and says up to where of the root's journal all that it had is. */
const keptBy = (floor: number, more: Record<string, unknown> = {}) => (all: Arriving) => {
  all.stands(NEXT, ["root", "c", "s"], C, S);
  ended(S, { next: NEXT, settled: true, ...more })(all);
  all.write(keptKey(S), { floor, known: 0, whole: false }, { replica: NEXT });
};
const announced = (clock: number, replica = S) => ({ write }: Arriving) =>
  write(awayKey("s"), { untilMs: 1 }, { clock, replica });
const both = (...all: readonly ((around: Arriving) => void)[]) => (around: Arriving) =>
  all.forEach((each) => each(around));

const belowOther = ({ stands }: Arriving) => {
  stands(5, ["root", "b"], ROOT);
  stands(S, ["root", "b", "s"], 5);
};
const belowUnknown = ({ stands }: Arriving) => stands(HERE, ["root", "b", "d"], 6);

/** The site's own positions: what it has of each journal, and where its own ends. */
const here = (first: Position | null, second: Position | null): (Position | null)[] => [first, second, HEAD];

const CASES: readonly Case[] = [
  // H1, H13
  { says: "from here", token: { replica: HERE, path: [1, 2, 250] }, expect: ["same", [1, 2, 250]] },
  {
    says: "from here, of this process",
    token: { replica: HERE, path: [1, 2, 270] },
    expect: ["same", [1, 2, 270]],
  },
  {
    says: "from here, in what was left out",
    token: { replica: HERE, path: [1, 2, 251] },
    expect: ["source_lost"],
  },
  {
    says: "from here, at the end of what was left out",
    token: { replica: HERE, path: [1, 2, 269] },
    expect: ["source_lost"],
  },
  { says: "from here, past the head", token: { replica: HERE, path: [1, 2, 301] }, expect: ["source_lost"] },
  {
    says: "from here, in what the root has left out",
    token: { replica: HERE, path: [61, 2, 250] },
    expect: ["source_lost"],
  },
  {
    says: "from elsewhere, in what the root has left out",
    token: { clock: 10, path: [79, 190, 77] },
    expect: ["source_lost"],
  },
  {
    says: "before what the root has left out",
    token: { path: [60, 190, 77] },
    expect: ["nothing", here(60, 190)],
  },
  {
    says: "after what the root has left out",
    token: { path: [80, 190, 77] },
    expect: ["nothing", here(80, 190)],
  },
  {
    says: "another site's own position, in what this one has left out",
    token: { path: [90, 190, 260] },
    expect: ["nothing", here(90, 190)],
  },
  {
    says: "it goes on, and has had what the root has left out",
    token: { path: [null, null, 77] },
    given: keptBy(70),
    expect: ["source_lost"],
  },
  // H3, H4
  {
    says: "its clock is past what is stable, what it saw is not here",
    token: { path: [90, 201, 77] },
    expect: ["asks"],
  },
  { says: "something is pending", token: { path: [90, null, 77] }, expect: ["asks"] },
  { says: "what it saw is here", token: { path: [90, 200, 77] }, expect: ["nothing", here(90, 200)] },
  {
    says: "its clock is stable",
    token: { clock: 6_000, path: [90, null, 77] },
    expect: ["nothing", here(90, 200)],
  },
  { says: "its clock is not quite", token: { clock: 6_001, path: [90, null, 77] }, expect: ["asks"] },
  {
    says: "from below the root only, where the root's journal counts",
    token: { replica: FAR, path: [100, 999, 77] },
    expect: ["nothing", here(100, 200)],
  },
  { says: "the root's journal is behind", token: { replica: FAR, path: [101, 5, 77] }, expect: ["asks"] },
  {
    says: "from the site above",
    token: { replica: B, path: [90, 200] },
    expect: ["nothing", here(90, 200)],
  },
  {
    says: "below the common ancestor's other disk its positions mean nothing",
    token: { path: [90, 150, 77] },
    given: ({ stands }) => {
      stands(5, ["root", "b"], ROOT);
      stands(S, ["root", "b", "s"], 5);
    },
    expect: ["asks"],
  },
  {
    says: "nor do those above it, where they are another disk's",
    token: { replica: S, clock: 6_000, path: [90, 150, 77] },
    given: ({ stands }) => {
      stands(2, ["root"], 0);
      stands(5, ["root", "b"], 2);
      stands(S, ["root", "b", "s"], 5);
    },
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "an incarnation that nobody here knows",
    token: { replica: 99, clock: 1, path: [1, 1, 1] },
    expect: ["asks"],
  },
  // H5, H9
  { says: "open", token: { open: true, clock: 10, path: [1, 1, 1] }, expect: ["asks"] },
  {
    says: "open, of a site that announced its stop since",
    token: { open: true, path: [90, 190, 77] },
    given: announced(9_000),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "open, and told later than that",
    token: { open: true },
    given: announced(8_999),
    expect: ["asks"],
  },
  {
    says: "pending, of a site that announced its stop since",
    token: { path: [90, null, 77] },
    given: announced(9_000),
    expect: ["nothing", here(90, 200)],
  },
  {
    says: "another incarnation's announcement",
    token: { path: [90, null, 77] },
    given: announced(9_000, 29),
    expect: ["asks"],
  },
  {
    says: "an announcement that came below another disk of the ancestor",
    token: { path: [90, null, 77] },
    given: both(announced(9_000), ({ stands }) => {
      stands(5, ["root", "b"], ROOT);
      stands(S, ["root", "b", "s"], 5);
    }),
    expect: ["asks"],
  },
  {
    says: "the announcement of one that has ended since",
    token: { clock: 8_000, path: [90, null, 77] },
    given: both(announced(9_000), keptBy(ROOT_DOWN + 1)),
    expect: ["asks"],
  },
  {
    says: "open, of a site that was drained and removed",
    token: { open: true },
    given: both(announced(9_000), ended(S, { removed: true }, 9_000)),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "the same, and that is back and has taken its word away, which this site never had",
    token: { open: true },
    given: ended(S, { removed: true, told: 9_000 }, 9_500),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "the same, and its session began after that word",
    token: { open: true, clock: 9_001 },
    given: ended(S, { removed: true, told: 9_000 }, 9_500),
    expect: ["source_lost"],
  },
  {
    says: "the same, and below another disk of the ancestor",
    token: { open: true },
    given: both(announced(9_000), ended(S, { removed: true }, 9_000), belowOther),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "the same, and the root ended it without that word",
    token: { open: true },
    given: both(announced(9_000), ended(S, { removed: true }, 8_999), belowOther),
    expect: ["source_lost"],
  },
  {
    says: "the same, and what it saw was told by a clock",
    token: { clock: 9_000, path: [null, null, 77] },
    given: both(announced(9_000), ended(S, { removed: true }, 8_999), belowOther),
    expect: ["source_lost"],
  },
  {
    says: "the same, and this site does not know yet below whom it stands",
    token: { open: true },
    given: both(announced(9_000), ended(S, { removed: true }, 8_999), belowUnknown),
    expect: ["asks"],
  },
  {
    says: "open, of this site before it was drained, removed and let in again",
    token: { replica: 15, open: true, path: [90, 190, 240] },
    given: both(
      ({ stands }) => stands(15, ["root", "b", "d"], B),
      announced(9_000, 15),
      ended(15, { removed: true }, 9_000),
    ),
    expect: ["nothing", here(null, null)],
  },
  // H2
  {
    says: "over, and within what was stable",
    token: { clock: 4_000 },
    given: ended(S),
    expect: ["nothing", here(90, 190)],
  },
  { says: "over, and past it", token: { clock: 4_001 }, given: ended(S), expect: ["source_lost"] },
  { says: "over, and open", token: { clock: 10, open: true }, given: ended(S), expect: ["source_lost"] },
  {
    says: "it lives, the disk above it is lost, and what it saw was further up",
    token: { replica: FAR, path: [90, 190, 77] },
    given: ended(C),
    expect: ["nothing", here(90, 200)],
  },
  {
    says: "it lives, the disk above it is lost, and what it saw was not further up",
    token: { replica: FAR, path: [null, 190, 77] },
    given: ended(C),
    expect: ["asks"],
  },
  {
    says: "both it and the disk above it are lost, and what it saw was in that one's journal only",
    token: { replica: FAR, clock: 3_500, path: [null, 190, 77] },
    given: both(ended(FAR), ended(C, {}, 3_000)),
    expect: ["source_lost"],
  },
  // H12
  {
    says: "it goes on, and all it had is here",
    token: { path: [90, null, 77] },
    given: keptBy(ROOT_DOWN),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "it goes on, and what it had is on its way",
    token: { path: [90, null, 77] },
    given: keptBy(ROOT_DOWN + 1),
    expect: ["asks"],
  },
  {
    says: "it goes on, and may have seen what was lost with its parent",
    token: { path: [null, null, 77] },
    given: keptBy(ROOT_DOWN, { gap: 8_000 }),
    expect: ["source_lost"],
  },
  {
    says: "it goes on, and is older than what was lost",
    token: { path: [null, null, 77] },
    given: keptBy(ROOT_DOWN, { gap: 9_000 }),
    expect: ["nothing", here(null, 200)],
  },
  {
    says: "open, it goes on, and may have seen what was lost, however old",
    token: { open: true, clock: 10, path: [null, null, 77] },
    given: keptBy(ROOT_DOWN, { gap: 8_000 }),
    expect: ["source_lost"],
  },
  {
    says: "open, of what this site was before",
    token: { replica: 15, open: true, path: [90, 190, 240] },
    given: ({ stands, write }) => {
      stands(15, ["root", "c", "d"], C);
      stands(HERE, ["root", "b", "d"], B, 15);
      write(endedKey(15), { stable: 4_000, next: HERE });
      write(keptKey(15), { floor: 0, known: 0, whole: true }, { replica: HERE });
    },
    expect: ["same", [null, null, 240]],
  },
  {
    says: LOST_ABOVE,
    token: { replica: 15, open: true, path: [null, null, 240] },
    given: ({ stands, write }) => {
      stands(15, ["root", "c", "d"], C);
      stands(HERE, ["root", "b", "d"], B, 15);
      write(endedKey(15), { stable: 4_000, next: HERE, gap: 8_000 });
      write(keptKey(15), { floor: 0, known: 0, whole: false }, { replica: HERE });
    },
    expect: ["source_lost"],
  },
  {
    says: "removed, and all it told is stable",
    token: { clock: 3_999 },
    given: both(ended(S, { removed: true }), ({ write }) => write(removedKey("s"), { atMs: 1 })),
    expect: ["nothing", here(90, 190)],
  },
  {
    says: "removed, and it announced its stop before",
    token: { path: [90, null, 77] },
    given: both(announced(9_000), ended(S, { removed: true })),
    expect: ["nothing", here(90, 200)],
  },
  {
    says: "open, removed, and it announced its stop before",
    token: { open: true, path: [90, 190, 77] },
    given: both(announced(9_000), ended(S, { removed: true })),
    expect: ["nothing", here(null, 200)],
  },
  // At the root
  {
    at: "root",
    says: "what it saw is in the root's journal",
    token: { path: [300, null, 1] },
    expect: ["nothing", [300]],
  },
  { at: "root", says: "the root is older than that", token: { path: [301, 1, 1] }, expect: ["source_lost"] },
  { at: "root", says: "the root has left that out", token: { path: [70, 1, 1] }, expect: ["source_lost"] },
  {
    at: "root",
    says: "stable at the root",
    token: { clock: OWN_STABLE, path: [null, null, 1] },
    expect: ["nothing", [HEAD]],
  },
  {
    at: "root",
    says: "not stable at the root",
    token: { clock: OWN_STABLE + 1, path: [null, null, 1] },
    expect: ["asks"],
  },
  {
    at: "root",
    says: "it goes on, and all it had is at the root",
    token: { path: [null, null, 77] },
    given: keptBy(HEAD),
    expect: ["nothing", [HEAD]],
  },
  {
    at: "root",
    says: "it goes on, and what it had is on its way",
    token: { path: [null, null, 77] },
    given: keptBy(HEAD + 50),
    expect: ["asks"],
  },
];

Deno.test("what becomes of a token, by what is known of its incarnation and of what has arrived (H1 to H5, H9, H12, H13)", async () => {
  for (const { says, token, at, given, expect } of CASES) {
    const all = arriving(at);
    given?.(all);
    all.core.rows.resumeAt(HEAD);
    assert.deepEqual(await outcome(all, tokenOf(token)), expect, says);
  }
});

Deno.test("a site below the root stops where a session has had of its journal what there is not (H13)", async () => {
  for (const [position, stops] of [[HEAD, false], [260, true], [HEAD + 1, true]] as const) {
    const all = arriving();
    const [how] = await outcome(all, tokenOf({ replica: HERE, path: [1, 2, position] }));
    assert.equal(how, stops ? "source_lost" : "same");
    assert.deepEqual(all.failures.map((error) => error instanceof OlderDisk), stops ? [true] : []);
    assert.deepEqual(all.noted, stops ? ["disk_went_back"] : []);
  }
  const root = arriving("root");
  assert.deepEqual(await outcome(root, tokenOf({ replica: ROOT, path: [HEAD + 1] })), ["source_lost"]);
  assert.deepEqual(root.failures, [], "the root has what all others have");
});

Deno.test("what one that is over wrote is neither stopped nor asked for: what is left of it comes by itself (H14, H15)", async () => {
  const stopped: string[] = [], stop = (site: string) => Promise.resolve(void stopped.push(site));
  const over = arriving();
  ended(S)(over);
  // Nobody may say more of what a removed site had told its parent.
  const removed = arriving();
  ended(S, { removed: true })(removed);
  void over.handoff.whole(tokenOf({}), stop).catch(() => {});
  assert.equal(await removed.handoff.whole(tokenOf({}), stop), null);
  assert.deepEqual(stopped, []);
  const living = arriving();
  void living.handoff.whole(tokenOf({}), stop).catch(() => {});
  await Promise.resolve();
  assert.deepEqual(stopped, ["s"]);
});

Deno.test("who asks for all that a site wrote is told nothing by what that said of a stop, as late as this comes (H9, H14)", async () => {
  const all = arriving(), { core } = all;
  let how = "asks";
  void all.handoff.whole(tokenOf({}), () => Promise.resolve()).then((left) =>
    how = left?.how ?? "nobody can tell"
  );
  for (let i = 0; i < 10; i++) await Promise.resolve();
  // By a clock that is ahead of this site's: it is from before the site was back, and wrote what is asked for.
  announced(core.clock.last + 1_000 * CLOCK_TICKS_PER_MS)(all);
  core.advanced();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(how, "asks");
});

Deno.test("what is left of one that is over is all here when the stable clocks have passed its end, and each owner's word, for long (H14)", async () => {
  const stop = () => Promise.resolve(), leftTicks = LEFT_MS * CLOCK_TICKS_PER_MS;
  for (const isOwned of [false, true]) {
    const all = arriving(), { core } = all;
    if (isOwned) all.write(wardsKey(S), { number: 1, owners: ["o"], previous: [] });
    ended(S)(all);
    const end = core.clock.last;
    if (isOwned) {
      core.clock.merge(end + leftTicks / 2);
      all.write(recoveredKey(S, "o"), { position: 0, down: [], config: 0, clock: 0 });
    }
    const last = core.clock.last;
    assert.equal(core.topology.toldEnd(S), last);
    let how = "waits";
    void all.handoff.whole(tokenOf({}), stop).then((left) => how = left?.how ?? "nobody can tell");
    const stable = async (clock: number) => {
      core.stable = core.stable.map(() => clock);
      core.advanced();
      await new Promise((resolve) => setImmediate(resolve));
      return how;
    };
    if (isOwned) {
      assert.equal(await stable(end + leftTicks), "waits", "its site may have taken some of it back");
    }
    assert.equal(await stable(last + leftTicks - 1), "waits");
    assert.equal(await stable(last + leftTicks), "wait");
  }
});

Deno.test("who is told of a loss by an open token writes later than all that it names, or is told of its clock first", async () => {
  const all = arriving(), { core } = all;
  const { token, given } = CASES.find(({ says }) => says === LOST_ABOVE) ?? {};
  given?.(all);
  const ahead = core.clock.last + 2 * CLOCK_AHEAD_MS_MAX * CLOCK_TICKS_PER_MS;
  const open = tokenOf({ ...token, clock: ahead });
  assert.deepEqual(
    await outcome(all, open),
    ["source_unreachable"],
    "no clock of this site's is moved so far",
  );
  await all.pass(2 * CLOCK_AHEAD_MS_MAX);
  assert.deepEqual(await outcome(all, open), ["source_lost"]);
  assert.ok(core.clock.tick() > ahead);
});

Deno.test("a token from the far future is refused, and moves no clock", async () => {
  const all = arriving(), before = all.core.clock.last;
  assert.deepEqual(await outcome(all, tokenOf({ clock: 2 ** 52 })), ["source_unreachable"]);
  assert.equal(all.core.clock.last, before);
  assert.deepEqual(await outcome(all, tokenOf({ replica: HERE, path: [1, 2, 3], clock: 2 ** 52 })), ["same", [
    1,
    2,
    3,
  ]]);
});
