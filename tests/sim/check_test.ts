import { deepStrictEqual, throws } from "node:assert/strict";
import { checkHistory } from "./checks.ts";
import { checkSessions } from "./check_sessions.ts";
import { checkSites } from "./check_sites.ts";
import type { Held, History, HistoryEvent, Seen, Ward, Written } from "./history.ts";

/** Builds a history by hand: each call is the next event, at the next millisecond. */
class Script {
  readonly #events: HistoryEvent[] = [];
  #requests = 0;
  #issues = 0;
  readonly #open = new Set<number>();
  #passedMs = 0;
  parents: ReadonlyMap<string, string | null> = new Map();
  owners: ReadonlyMap<string, number> = new Map();
  watch: History["watch"];
  clockMs = 0;
  aheadMs = 0;
  hasWrongClocks = false;
  clocksApartMs = 0;

  get #atMs(): number {
    return this.#events.length + this.#passedMs;
  }

  request(session: number, site: string, presents: readonly number[] = [], final = false): number {
    const request = this.#requests++;
    this.#open.add(request);
    this.#events.push({ kind: "request", atMs: this.#atMs, request, session, site, presents, final });
    return request;
  }

  begin(request: number, reading: number): this {
    this.#events.push({ kind: "reading", atMs: this.#atMs, request, reading, clockMs: this.clockMs });
    return this;
  }

  read(request: number, ...rows: Seen[]): this {
    const { clockMs, aheadMs } = this;
    this.#events.push({ kind: "read", atMs: this.#atMs, request, rows, clockMs, aheadMs });
    return this;
  }

  /** A read that began before. */
  ended(request: number, reading: number, ...rows: Seen[]): this {
    this.#events.push({ kind: "read", atMs: this.#atMs, request, rows, reading, clockMs: this.clockMs });
    return this;
  }

  write(request: number, stamp: string | null, ...writes: Written[]): this {
    return this.writeIf(request, stamp, [], ...writes);
  }

  writeIf(request: number, stamp: string | null, checks: readonly Seen[], ...writes: Written[]): this {
    this.ask(request, checks, ...writes);
    this.#events.push({ kind: "wrote", atMs: this.#atMs, request, writes, stamp });
    return this;
  }

  /** A write that nobody hears the end of. */
  ask(request: number, checks: readonly Seen[], ...writes: Written[]): this {
    this.#events.push({ kind: "write", atMs: this.#atMs, request, writes, checks });
    return this;
  }

  /** Ends a request; what it gives is the issue that its client holds then. */
  answer(request: number, outcome = "ok", final = false): number {
    const issue = this.#issues++;
    this.#open.delete(request);
    if (outcome === "ok") this.#events.push({ kind: "issue", atMs: this.#atMs, request, issue, open: false });
    this.#events.push({ kind: "end", atMs: this.#atMs, request, outcome, final });
    return issue;
  }

  /** An open answer begins; the issue that its client holds from then on. */
  open(request: number): number {
    const issue = this.#issues++;
    this.#events.push({ kind: "issue", atMs: this.#atMs, request, issue, open: true });
    return issue;
  }

  /** More of it leaves, and arrives. */
  chunk(request: number, chunk: number, arrives = true): this {
    this.#events.push({ kind: "chunk", atMs: this.#atMs, request, chunk });
    if (arrives) this.#events.push({ kind: "told", atMs: this.#atMs, request, chunk });
    return this;
  }

  commit(
    site: string,
    rows: readonly Held[],
    covers: readonly number[] = [],
    gone: readonly number[] = [],
    wards: readonly Ward[] = [],
  ): this {
    const changes = covers.map((key) => [key, true] as const);
    const { clockMs } = this;
    this.#events.push({
      kind: "commit",
      atMs: this.#atMs,
      site,
      rows,
      gone,
      covers: changes,
      wards,
      clockMs,
    });
    return this;
  }

  start(site: string, blank: boolean): this {
    this.#events.push({ kind: "start", atMs: this.#atMs, site, blank });
    return this;
  }

  /** Time in which nothing happens. */
  pass(ms: number): this {
    this.#passedMs += ms;
    return this;
  }

  lost(site: string, isForGood = false): this {
    this.#events.push({ kind: "lost", atMs: this.#atMs, site, isForGood });
    return this;
  }

  /** Its disk has the word that it leaves, and these keys stand behind that. */
  leaves(site: string, ...behind: number[]): this {
    this.#events.push({ kind: "leaves", atMs: this.#atMs, site, behind });
    return this;
  }

  /** It was drained before. */
  emptied(site: string): this {
    this.#events.push({ kind: "emptied", atMs: this.#atMs, site });
    return this;
  }

  removed(site: string): this {
    this.#events.push({ kind: "removed", atMs: this.#atMs, site });
    return this;
  }

  /** The older copy that was put in the place of the disk that it lost is set aside. */
  aside(site: string): this {
    this.#events.push({ kind: "lost", atMs: this.#atMs, site, isForGood: false, isAside: true });
    return this;
  }

  reborn(site: string, parent: string): this {
    this.#events.push({ kind: "reborn", atMs: this.#atMs, site, parent });
    return this;
  }

  numbered(site: string, number: number): this {
    this.#events.push({ kind: "numbered", atMs: this.#atMs, site, number });
    return this;
  }

  /** A site's disk says that an incarnation of it has owners. */
  owned(site: string, number: number): this {
    const none = { rows: [], gone: [], covers: [], wards: [], clockMs: this.clockMs };
    this.#events.push({ kind: "commit", atMs: this.#atMs, site, owned: [number], ...none });
    return this;
  }

  watched(site: string, keys: readonly number[], ...rows: Seen[]): this {
    this.#events.push({ kind: "watched", atMs: this.#atMs, site, keys, rows });
    return this;
  }

  final(site: string, rows: readonly Held[], pending = 0): this {
    const { aheadMs } = this;
    this.#events.push({ kind: "final", atMs: this.#atMs, site, rows, covers: [0, 1, 2], pending, aheadMs });
    return this;
  }

  history(): History {
    const { parents, owners, watch, hasWrongClocks, clocksApartMs } = this;
    const watching = watch === undefined ? {} : { watch };
    return {
      ...{
        keys: 3,
        root: "root",
        parents,
        owners,
        horizonMs: 100,
        hasWrongClocks,
        clocksApartMs,
        ...watching,
      },
      events: this.#events,
    };
  }

  sessions(): string[] {
    return checkSessions(this.history()).map((violation) => violation.checker);
  }

  sites(): string[] {
    return checkSites(this.history()).map((violation) => violation.checker);
  }

  /** What all checkers say, and what they let pass. */
  all(): { readonly wrong: string[]; readonly excused: string[] } {
    const excused: string[] = [];
    const found = checkHistory(this.history(), (what) => void excused.push(what));
    return { wrong: found.map(({ checker }) => checker), excused };
  }
}

const set = (write: number, key: number): Written => ({ write, key, what: "set" });
const gone = (write: number, key: number): Written => ({ write, key, what: "delete" });
const sum = (write: number, key: number): Written => ({ write, key, what: "sum" });
const row = (key: number, write: number, stamp: string): Seen => ({ key, write, stamp });
const tomb = (key: number, stamp: string): Seen => ({ key, write: null, stamp });
const absent = (key: number): Seen => ({ key, write: null, stamp: "" });
const sums = (key: number, ...writes: number[]): Seen => ({ key, write: null, stamp: "x", sums: writes });

Deno.test("session checker passes a chain that only moves forward", () => {
  const s = new Script();
  const a = s.request(0, "s1");
  s.read(a, absent(0)).write(a, "05", set(1, 0));
  const token = s.answer(a);
  const b = s.request(0, "s2", [token]);
  s.read(b, row(0, 1, "05")).write(b, "07", gone(2, 0)).read(b, absent(0)).write(b, "08", set(3, 0));
  const c = s.request(1, "s1");
  s.read(c, row(0, 1, "05"));
  s.answer(b), s.answer(c);
  deepStrictEqual(s.sessions(), []);
});

Deno.test("session checker reports read-your-writes when an own write is absent at the next site", () => {
  const s = new Script();
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0));
  const b = s.request(0, "s2", [s.answer(a)]);
  s.read(b, absent(0));
  deepStrictEqual(s.sessions(), ["read-your-writes"]);
});

Deno.test("session checker reports a version that is given twice, but for one that nobody had when its process died", () => {
  const after: Record<string, [between: (s: Script) => void, wrong: string[]]> = {
    "the same process": [() => {}, ["integrity"]],
    "a crash": [(s) => s.start("s1", false), []],
    "a crash of another": [(s) => s.start("s2", false), ["integrity"]],
    "a commit of it": [(s) => s.commit("s1", [row(0, 1, "05")]).start("s1", false), ["integrity"]],
    "a commit of a later one": [(s) => s.commit("s1", [row(1, 9, "06")]).start("s1", false), ["integrity"]],
    "a commit elsewhere": [(s) => s.commit("s2", [row(0, 1, "05")]).start("s1", false), ["integrity"]],
    "a commit of an owner": [
      (s) => s.commit("s2", [], [], [], [{ of: 1, key: 0, row: row(0, 1, "05") }]).start("s1", false),
      ["integrity"],
    ],
  };
  for (const [what, [between, wrong]] of Object.entries(after)) {
    const s = new Script();
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0));
    s.answer(a, "crashed");
    between(s);
    const b = s.request(1, "s1");
    s.write(b, "05", set(2, 0));
    s.answer(b);
    deepStrictEqual(s.sessions(), wrong, what);
  }
});

Deno.test("session checker follows presented tokens, not sessions", () => {
  const s = new Script();
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0));
  s.answer(a);
  const b = s.request(0, "s2");
  s.read(b, absent(0));
  deepStrictEqual(s.sessions(), []);
});

Deno.test("session checker counts what an open answer told, and nothing after it", () => {
  const s = new Script();
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0));
  const early = s.open(a);
  s.write(a, "06", set(2, 1));
  const b = s.request(0, "s2", [early]);
  s.read(b, row(0, 1, "05"), absent(1));
  deepStrictEqual(s.sessions(), []);
});

Deno.test("session checker follows what an open answer told after its token left", () => {
  for (const arrives of [true, false]) {
    const s = new Script();
    const a = s.request(0, "s1");
    const issue = s.open(a);
    s.write(a, "05", set(1, 0)).chunk(a, 1, arrives).write(a, "06", set(2, 1));
    const b = s.request(0, "s2", [issue]);
    s.read(b, absent(0), absent(1));
    deepStrictEqual(s.sessions(), arrives ? ["read-your-writes"] : []);
  }
});

Deno.test("session checker reports monotonic reads when a read goes back, to absence too", () => {
  for (const later of [row(0, 1, "05"), absent(0)]) {
    const s = new Script();
    const w = s.request(0, "s1");
    s.write(w, "05", set(1, 0)).write(w, "06", set(2, 0));
    const a = s.request(1, "s1");
    s.read(a, row(0, 2, "06"));
    const b = s.request(1, "s2", [s.answer(a)]);
    s.read(b, later);
    deepStrictEqual(s.sessions(), ["monotonic reads"]);
  }
});

Deno.test("session checker reports monotonic reads when a deleted row lives again", () => {
  const s = new Script();
  const w = s.request(0, "s1");
  s.write(w, "05", set(1, 0)).write(w, "06", gone(2, 0));
  const a = s.request(1, "s1");
  s.read(a, row(0, 1, "05")).read(a, absent(0));
  const b = s.request(1, "s2", [s.answer(a)]);
  s.read(b, row(0, 1, "05"));
  deepStrictEqual(s.sessions(), ["monotonic reads"]);
});

Deno.test("session checker reports monotonic writes when a later write shows without an earlier one", () => {
  const s = new Script();
  const w = s.request(0, "s1");
  s.write(w, "05", set(1, 0)).write(w, "06", set(2, 1));
  const a = s.request(1, "s2");
  s.read(a, row(1, 2, "06")).read(a, absent(0));
  deepStrictEqual(s.sessions(), ["monotonic writes"]);
});

Deno.test("session checker reports writes follow reads when an answer shows without the question", () => {
  const s = new Script();
  const q = s.request(0, "s1");
  s.write(q, "05", set(1, 0));
  const w = s.request(1, "s1");
  s.read(w, row(0, 1, "05")).write(w, "06", set(2, 1));
  const a = s.request(2, "s2");
  s.read(a, row(1, 2, "06")).read(a, absent(0));
  deepStrictEqual(s.sessions(), ["writes follow reads"]);
});

Deno.test("session checker reports causality through a third session", () => {
  const s = new Script();
  const q = s.request(0, "s1");
  s.write(q, "05", set(1, 0));
  const w = s.request(1, "s1");
  s.read(w, row(0, 1, "05")).write(w, "06", set(2, 1));
  const v = s.request(2, "s1");
  s.read(v, row(1, 2, "06")).write(v, "07", set(3, 2));
  const a = s.request(3, "s2");
  s.read(a, row(2, 3, "07")).read(a, absent(0));
  deepStrictEqual(s.sessions(), ["causality"]);
});

Deno.test("session checker reports a write that loses to what its session had seen", () => {
  const s = new Script();
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0)).write(a, "04", set(2, 0));
  const b = s.request(1, "s1");
  s.read(b, row(0, 1, "05")).write(b, "03", set(3, 0));
  deepStrictEqual(s.sessions(), ["monotonic writes", "writes follow reads"]);
});

Deno.test("session checker reports an atomic write of which a part shows", () => {
  const s = new Script();
  const w = s.request(0, "s1");
  s.write(w, "05", set(1, 0), set(2, 1));
  const a = s.request(1, "s2");
  s.read(a, row(0, 1, "05")).read(a, absent(1));
  deepStrictEqual(s.sessions(), ["monotonic writes"]);
});

Deno.test("session checker reports sums that are lost, doubled or invented", () => {
  const s = new Script();
  const w = s.request(0, "s1");
  s.write(w, "05", sum(1, 2)).write(w, "06", sum(2, 2));
  s.read(w, sums(2, 2)).read(w, sums(2, 1, 2, 2)).read(w, sums(2, 1, 2, -1));
  deepStrictEqual(s.sessions(), ["read-your-writes", "integrity", "integrity"]);
});

Deno.test("session checker reports values that nobody wrote, refused writes and shared versions", () => {
  const s = new Script();
  const w = s.request(0, "s1");
  const v = s.request(1, "s2");
  s.write(v, "03", set(4, 0));
  s.writeIf(w, null, [absent(0)], set(1, 0)).write(w, "05", set(2, 1));
  s.write(v, "05", set(3, 1)).read(v, row(0, 1, "04"), row(2, 9, "04"));
  deepStrictEqual(s.sessions(), ["integrity", "integrity", "integrity"]);
});

/** A write of key 0, then one of key 1 by a session that had seen it; both acknowledged at s1. */
function causeAndEffect(): Script {
  const s = new Script();
  for (const site of ["root", "s1", "s2"]) s.start(site, true);
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0)).write(a, "06", set(2, 1));
  s.commit("s1", [row(0, 1, "05"), row(1, 2, "06")], [0, 1, 2]);
  s.answer(a);
  return s;
}

Deno.test("site checker passes causes before effects", () => {
  const s = causeAndEffect().commit("s2", [row(0, 1, "05")], [0, 1]).commit("s2", [row(1, 2, "06")]);
  deepStrictEqual(s.sites(), []);
});

Deno.test("site checker reports an effect that a site holds without a cause that it covers", () => {
  deepStrictEqual(causeAndEffect().commit("s2", [row(1, 2, "06")], [0, 1]).sites(), ["site closure"]);
  deepStrictEqual(causeAndEffect().commit("s2", [row(1, 2, "06")], [1]).sites(), []);
  const covered = causeAndEffect().commit("s2", [row(1, 2, "06")], [1]).commit("s2", [], [0]);
  deepStrictEqual(covered.sites(), ["site closure"]);
});

Deno.test("site checker takes a deletion for an older write, and nothing for a younger one", () => {
  const deleted = (stamp: string) => {
    const s = causeAndEffect();
    const d = s.request(1, "s1");
    s.write(d, stamp, gone(3, 0)).commit("s3", [tomb(0, stamp)]);
    s.answer(d);
    return s.commit("s2", [row(1, 2, "06")], [0, 1]).sites();
  };
  deepStrictEqual(deleted("07"), []);
  deepStrictEqual(deleted("04"), ["site closure"]);
});

Deno.test("site checker reports acknowledged writes that the root does not have in the end", () => {
  const all = [row(0, 1, "05"), row(1, 2, "06")];
  deepStrictEqual(causeAndEffect().final("root", all).sites(), []);
  deepStrictEqual(causeAndEffect().final("root", [row(0, 9, "08"), row(1, 2, "06")]).sites(), []);
  deepStrictEqual(causeAndEffect().final("root", [row(1, 2, "06")]).sites(), ["durability"]);
  deepStrictEqual(causeAndEffect().final("root", [tomb(0, "04"), row(1, 2, "06")]).sites(), ["durability"]);
});

Deno.test("site checker takes a write that an open answer told of for acknowledged", () => {
  for (const chunks of [0, 1]) {
    const s = new Script();
    for (const site of ["root", "s1"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.open(a);
    s.write(a, "05", set(1, 0));
    for (let chunk = 0; chunk < chunks; chunk++) s.chunk(a, chunk);
    s.answer(a, "crashed");
    deepStrictEqual(s.final("root", []).sites(), chunks === 0 ? [] : ["durability"]);
  }
});

Deno.test("site checker excuses the loss of what was only on a disk that was lost", () => {
  const lost = causeAndEffect().commit("root", [row(0, 1, "05")], [0]).lost("s1").start("s1", true);
  deepStrictEqual(lost.final("root", [row(0, 1, "05")]).all(), {
    wrong: [],
    excused: ["an acknowledged write, with its disk"],
  });
  const carried = causeAndEffect().commit("s2", [row(0, 1, "05")], [0]).lost("s1").start("s1", true);
  deepStrictEqual(carried.final("root", []).sites(), ["durability"]);
});

Deno.test("an older copy that is set aside goes with the disk in whose place it was put, and is no other loss (V4)", () => {
  const told = (f: number) => {
    const s = new Script();
    s.parents = new Map([["root", null], ["s1", "root"]]);
    s.owners = new Map([["s1", f]]);
    s.start("root", true).start("s1", true).numbered("s1", 2).owned("s1", 2);
    const a = s.request(0, "s1");
    s.write(a, "05", { write: 1, key: 0, what: "set" }).commit("s1", [row(0, 1, "05")], [0]);
    if (f > 0) s.commit("root", [], [], [], [{ of: 2, key: 0, row: row(0, 1, "05") }]);
    const before = s.answer(a);
    // The copy comes up with what it has, answers somebody, is found out, and goes.
    s.lost("s1").start("s1", false).commit("s1", [row(0, 1, "05")], [0]).numbered("s1", 2);
    const meanwhile = s.answer(s.request(1, "s1"));
    s.aside("s1").start("s1", true).commit("s1", [], [], [0]).numbered("s1", 3);
    for (const token of [before, meanwhile]) s.answer(s.request(2, "root", [token]), "source_lost");
    return s.final("root", f > 0 ? [row(0, 1, "05")] : []).all();
  };
  deepStrictEqual(told(0), {
    wrong: [],
    excused: [
      "source_lost: what it saw is gone",
      "source_lost: the disk of its source, and what it saw is elsewhere",
      "an acknowledged write, with its disk",
    ],
  });
  deepStrictEqual(told(1).wrong, ["source_lost", "source_lost"]);
});

Deno.test("an older copy that is from before its site had owners is told of as young, and what was told without it is not (V4)", () => {
  const told = (isCopyOwned: boolean) => {
    const s = new Script();
    s.parents = new Map([["root", null], ["s1", "root"]]);
    s.owners = new Map([["s1", 1]]);
    s.start("root", true).start("s1", true).numbered("s1", 2).owned("s1", 2);
    const a = s.request(0, "s1"), before = s.open(a);
    s.answer(a);
    s.lost("s1").start("s1", false).commit("s1", []).numbered("s1", 2);
    if (isCopyOwned) s.owned("s1", 2);
    const b = s.request(1, "s1"), meanwhile = s.open(b);
    s.answer(b);
    s.aside("s1").start("s1", true).commit("s1", []).numbered("s1", 3);
    for (const token of [meanwhile, before]) s.answer(s.request(2, "root", [token]), "source_lost");
    return s.all();
  };
  deepStrictEqual(told(true), { wrong: ["source_lost", "source_lost"], excused: [] });
  deepStrictEqual(told(false), {
    wrong: ["source_lost"],
    excused: ["source_lost: its source, or a disk above it, had no owners yet"],
  });
});

Deno.test("site checker reports sites that differ from the root and pushes that did not drain", () => {
  const all = [row(0, 1, "05"), row(1, 2, "06")];
  const s = causeAndEffect().final("root", all).final("s1", [row(0, 1, "05"), row(1, 1, "06")]);
  deepStrictEqual(s.sites(), ["convergence"]);
  const same = causeAndEffect().final("root", all).final("s1", [...all, tomb(2, "04")], 3);
  deepStrictEqual(same.sites(), ["liveness"]);
});

Deno.test("site checker reports requests that never end, fail for nothing, or lose no source", () => {
  const s = new Script();
  s.request(0, "s1");
  s.answer(s.request(1, "s1"), "source_unreachable", true);
  s.answer(s.request(1, "s1"), "source_unreachable");
  s.answer(s.request(2, "s1", [s.answer(s.request(2, "s2"))]), "source_lost");
  s.answer(s.request(3, "s1"), "fault: TypeError");
  s.answer(s.request(3, "s1"), "a code that nobody knows");
  deepStrictEqual(s.sites(), ["liveness", "source_lost", "fault", "fault", "liveness"]);
});

Deno.test("site checker excuses a loss that is told until the site below has joined again", () => {
  for (const joins of [false, true]) {
    const s = new Script();
    s.parents = new Map([["root", null], ["c", "root"], ["s1", "c"], ["s2", "root"]]);
    for (const site of ["root", "c", "s1"]) s.start(site, true);
    s.lost("c").start("c", true);
    if (joins) s.reborn("s1", "c");
    const token = s.answer(s.request(0, "s1"));
    s.answer(s.request(0, "s2", [token]), "source_lost");
    deepStrictEqual(s.sites(), joins ? ["source_lost"] : []);
    const running = s.request(1, "s1");
    s.answer(running, "source_lost");
    deepStrictEqual(s.sites(), joins ? ["source_lost", "source_lost"] : []);
  }
});

Deno.test("site checker excuses no loss for what a site tells under another parent, nor for one it had left", () => {
  const s = new Script();
  s.parents = new Map([["root", null], ["c", "root"], ["d", "root"], ["s1", "c"], ["s2", "root"]]);
  for (const site of ["root", "c", "d", "s1"]) s.start(site, true);
  const before = s.answer(s.request(0, "s1"));
  s.reborn("s1", "d");
  const after = s.answer(s.request(0, "s1"));
  s.lost("c").start("c", true);
  for (const token of [before, after]) s.answer(s.request(0, "s2", [token]), "source_lost");
  s.lost("d").start("d", true);
  s.answer(s.request(0, "s2", [after]), "source_lost");
  deepStrictEqual(s.sites(), ["source_lost", "source_lost"]);
  deepStrictEqual(s.all().excused, ["source_lost: a disk above its source, and what it saw is elsewhere"]);
});

Deno.test("site checker excuses no loss where owners are enough, and counts disks that are lost at one time", () => {
  const wiped = (...disks: readonly [first: string, second: string, together: boolean]) => {
    const [first, second, together] = disks;
    const s = new Script();
    s.parents = new Map([["root", null], ["s1", "root"], ["s2", "root"], ["s3", "root"]]);
    s.owners = new Map([["s1", 1], ["s2", 1], ["s3", 1]]);
    for (const site of s.parents.keys()) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0)).commit("s1", [row(0, 1, "05")]);
    const ward = { of: 2, key: 0, row: row(0, 1, "05") };
    s.commit("s2", [], [], [], [ward]);
    const token = s.answer(a);
    s.lost(first);
    if (!together) s.start(first, true).pass(600);
    s.lost(second);
    if (together) s.start(first, true);
    s.start(second, true);
    s.answer(s.request(0, "s3", [token]), "source_lost");
    return s.final("root", []).all();
  };
  // It is gone all the same where the owner is lost long after: who had it did not hand it on.
  deepStrictEqual(wiped("s1", "s2", false).wrong, ["source_lost", "durability"]);
  deepStrictEqual(wiped("s1", "s3", true).wrong, ["durability"]);
  deepStrictEqual(wiped("s1", "s2", true), {
    wrong: [],
    excused: ["source_lost: what it saw is gone", "an acknowledged write, with f + 1 disks"],
  });
});

Deno.test("site checker excuses a loss in spite of owners where there were none yet, and below who is named as lost", () => {
  const told = (from: string, { open = false, owned = false, isForGood = false } = {}) => {
    const s = new Script();
    s.parents = new Map([["root", null], ["c", "root"], ["s1", "c"], ["s2", "root"]]);
    s.owners = new Map([["c", 1], ["s1", 1], ["s2", 1]]);
    for (const [i, site] of ["root", "c", "s1", "s2"].entries()) s.start(site, true).numbered(site, i + 1);
    s.owned("s1", 3);
    if (owned) s.owned("c", 2);
    const a = s.request(0, from), token = open ? s.open(a) : s.answer(a);
    s.lost("c", isForGood);
    if (open) s.answer(a, "crashed");
    s.answer(s.request(1, "s2", [token]), "source_lost");
    return s.all();
  };
  const young = ["source_lost: its source, or a disk above it, had no owners yet"];
  deepStrictEqual(told("s1"), { wrong: [], excused: young });
  deepStrictEqual(told("c", { open: true }), { wrong: [], excused: young });
  deepStrictEqual(told("c").wrong, ["source_lost"]);
  deepStrictEqual(told("s1", { owned: true }).wrong, ["source_lost"]);
  deepStrictEqual(told("c", { open: true, owned: true }).wrong, ["source_lost"]);
  deepStrictEqual(told("c", { owned: true, isForGood: true }).wrong, ["source_lost"]);
  deepStrictEqual(told("s1", { owned: true, isForGood: true }), {
    wrong: [],
    excused: ["source_lost: a disk above its source, which an operator named as lost"],
  });
});

Deno.test("site checker does not take for lost what another site has yet to write down, or shows later", () => {
  const all = [row(1, 2, "06")];
  for (const where of ["memory", "disk"]) {
    const s = new Script();
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0));
    if (where === "disk") s.commit("s1", [row(0, 1, "05")]);
    s.lost(where === "disk" ? "s1" : "s2");
    s.commit(where === "disk" ? "s2" : "s1", [row(0, 1, "05")]);
    s.answer(a);
    deepStrictEqual(s.final("root", all).sites(), ["durability"], where);
  }
});

Deno.test("checkers ask for what was not lost behind what was", () => {
  const s = new Script();
  for (const site of ["root", "s1", "s2", "s3"]) s.start(site, true);
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0));
  s.commit("s1", [row(0, 1, "05")]);
  // Another overwrites it, and a third tells of what came after that; then the second's disk is lost.
  const b = s.request(1, "s2");
  s.write(b, "07", set(2, 0)).write(b, "08", set(3, 1));
  s.commit("s2", [row(0, 2, "07"), row(1, 3, "08")]).commit("s3", [row(1, 3, "08")]);
  const own = s.answer(a);
  s.answer(b, "crashed");
  s.lost("s2");
  const c = s.request(0, "s3", [own]);
  s.read(c, row(1, 3, "08")).read(c, absent(0));
  s.answer(c);
  deepStrictEqual(s.sessions(), ["read-your-writes"]);
  deepStrictEqual(s.commit("s3", [], [0]).sites(), []);
});

/** Key 1 is seen at s3, and key 0, its cause, was on a disk that is lost. */
function lostCause(): { readonly s: Script; readonly reader: number } {
  const s = new Script();
  for (const site of ["root", "s1", "s3"]) s.start(site, true);
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0)).write(a, "06", set(2, 1));
  s.commit("s1", [row(0, 1, "05"), row(1, 2, "06")]).commit("s3", [row(1, 2, "06")]);
  s.answer(a);
  s.lost("s1");
  const reader = s.request(1, "s3");
  return { s: s.read(reader, row(1, 2, "06")), reader };
}

Deno.test("session checker lets pass an effect whose cause is lost, and counts it", () => {
  const { s, reader } = lostCause();
  s.read(reader, absent(0)).answer(reader);
  deepStrictEqual(s.all(), { wrong: [], excused: ["the cause is lost, and read without it"] });
});

Deno.test("session checker asks for a cause again where it is back, and everywhere in the end", () => {
  for (
    const [site, isFinal, wrong] of [["s3", false, []], ["s1", false, ["monotonic writes"]], ["s3", true, 1]]
  ) {
    const { s, reader } = lostCause();
    s.answer(reader);
    // A message was on its way.
    s.start("s1", true).commit("s1", [row(0, 1, "05"), row(1, 2, "06")]);
    const c = s.request(2, `${site}`, [], isFinal === true);
    s.begin(c, 0).ended(c, 0, row(1, 2, "06")).read(c, absent(0)).answer(c);
    const found = s.sessions().filter((checker) => checker !== "stale read");
    deepStrictEqual(found, wrong === 1 ? ["monotonic writes"] : wrong, `${site} ${isFinal}`);
  }
});

Deno.test("session checker takes no deletion for an explanation whose process died with it, before a disk shows it", () => {
  for (
    const [when, wrong] of [["never", ["read-your-writes"]], ["at its site", []], ["on a disk", []]] as const
  ) {
    const s = new Script();
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0)).commit("s1", [row(0, 1, "05")]);
    const own = s.answer(a), d = s.request(1, "s2");
    s.ask(d, [], gone(2, 0));
    if (when === "on a disk") s.commit("s2", [tomb(0, "07")]);
    if (when !== "at its site") s.start("s2", false);
    const site = when === "at its site" ? "s2" : "s1";
    s.read(s.request(0, site, [own]), absent(0));
    deepStrictEqual(s.sessions().filter((checker) => checker !== "stale read"), wrong, when);
  }
});

Deno.test("session checker takes a deletion for an explanation that was overtaken before its disk could show it", () => {
  const stale = ["stale read", "read-your-writes"];
  for (
    const [when, wrong] of [["not yet", stale], ["an older row", stale], ["died before", stale], [
      "is down",
      [],
    ]] as const
  ) {
    const s = new Script();
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "06", set(1, 0)).commit("s1", [row(0, 1, "06")]);
    const own = s.answer(a), d = s.request(1, "s2");
    s.write(d, "07", gone(2, 0)).write(d, "08", set(3, 0));
    if (when === "an older row") s.commit("s2", [row(0, 1, "06")]);
    if (when === "died before") s.start("s2", false);
    if (when === "is down" || when === "died before") s.commit("s2", [row(0, 3, "08")]);
    s.read(s.request(0, "s1", [own]), absent(0));
    deepStrictEqual(s.sessions(), wrong, when);
  }
});

Deno.test("session checker learns from an absence which deletion was seen", () => {
  const s = new Script();
  for (const site of ["root", "s1"]) s.start(site, true);
  const w = s.request(0, "s1");
  s.write(w, "05", set(1, 0)).write(w, "06", set(2, 1)).write(w, "07", gone(3, 0));
  s.commit("s1", [tomb(0, "07"), row(1, 2, "06")]);
  const a = s.request(1, "s1");
  s.read(a, absent(0));
  const b = s.request(1, "s2", [s.answer(a)]);
  s.read(b, absent(1));
  deepStrictEqual(s.sessions(), ["monotonic writes"]);
});

Deno.test("session checker reports what has expired and shows, and what is gone before it has", () => {
  const until = { write: 1, key: 0, what: "expiring", expiresAtMs: 150 } as const;
  for (
    const [clockMs, seen, wrong] of [
      [149, row(0, 1, "05"), []],
      [149, absent(0), ["read-your-writes"]],
      [150, absent(0), []],
      [150, row(0, 1, "05"), ["expiry"]],
    ] as const
  ) {
    const s = new Script();
    s.clockMs = 100;
    for (const site of ["root", "s1"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", until).commit("s1", [row(0, 1, "05")]);
    const b = s.request(0, "s2", [s.answer(a)]);
    s.clockMs = clockMs;
    s.begin(b, 0).ended(b, 0, seen);
    deepStrictEqual(s.sessions(), wrong, `${clockMs} ${seen.write}`);
  }
});

Deno.test("session checker reports a read below what lay on its site's disk when it began", () => {
  for (const early of [true, false]) {
    const s = new Script();
    for (const site of ["root", "s1"]) s.start(site, true);
    const w = s.request(0, "s1");
    s.write(w, "05", set(1, 0)).write(w, "06", set(2, 0)).commit("s1", [row(0, 1, "05")]);
    const a = s.request(1, "s1");
    if (early) s.begin(a, 0).commit("s1", [row(0, 2, "06")]);
    else s.commit("s1", [row(0, 2, "06")]).begin(a, 0);
    s.ended(a, 0, row(0, 1, "05"));
    deepStrictEqual(s.sessions(), early ? [] : ["stale read"]);
  }
});

Deno.test("session checker reports conditions that were broken, and refusals without a reason", () => {
  const checked = (between: (s: Script) => void, stamp: string | null) => {
    const s = new Script();
    for (const site of ["root", "s1"]) s.start(site, true);
    const w = s.request(0, "s1");
    s.write(w, "05", set(1, 0)).commit("s1", [row(0, 1, "05")]);
    const a = s.request(1, "s1");
    s.read(a, row(0, 1, "05"));
    between(s);
    s.writeIf(a, stamp, [row(0, 1, "05")], set(2, 0));
    return s.sessions();
  };
  const other = (s: Script) => void s.write(s.request(2, "s1"), "06", set(3, 0));
  deepStrictEqual(checked(() => {}, "07"), []);
  deepStrictEqual(checked(() => {}, null), ["conditions"]);
  deepStrictEqual(checked(other, "07"), ["conditions"]);
  deepStrictEqual(checked(other, null), []);
});

Deno.test("disk checker reports rows that nobody wrote", () => {
  const s = new Script();
  for (const site of ["root", "s1"]) s.start(site, true);
  const w = s.request(0, "s1");
  s.write(w, "05", set(1, 0)).write(w, "06", sum(2, 2)).writeIf(w, null, [row(0, 9, "01")], gone(3, 1));
  s.answer(w, "crashed");
  s.commit("s1", [row(0, 1, "04"), row(1, 1, "05"), { ...sums(2, 2, 2), stamp: "06" }, tomb(1, "07")]);
  deepStrictEqual(s.all().wrong, ["integrity", "integrity", "integrity", "integrity"]);
});

Deno.test("disk checker reports a row that leaves a disk, or goes back, before the root has it", () => {
  for (const isAtRoot of [true, false]) {
    for (const goes of [[], [row(0, 1, "05")]]) {
      const s = new Script();
      for (const site of ["root", "s1"]) s.start(site, true);
      const w = s.request(0, "s1");
      s.write(w, "05", set(1, 0)).write(w, "06", set(2, 0)).commit("s1", [row(0, 2, "06")]);
      s.answer(w);
      if (isAtRoot) s.commit("root", [row(0, 2, "06")]);
      s.commit("s1", goes, [], goes.length === 0 ? [0] : []);
      deepStrictEqual(s.all().wrong, isAtRoot ? [] : ["kept"]);
    }
  }
});

Deno.test("disk checker reports a write that is told and is on too few disks", () => {
  const told = (f: number, ...holders: string[]) => {
    const s = new Script();
    s.owners = new Map([["s1", f]]);
    for (const site of ["root", "s1", "s2", "s3"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0));
    for (const site of holders) {
      if (site === "s2") s.commit(site, [], [], [], [{ of: 2, key: 0, row: row(0, 1, "05") }]);
      else s.commit(site, [row(0, 1, "05")]);
    }
    s.answer(a);
    return s.all().wrong;
  };
  deepStrictEqual(told(0), ["copies"]);
  deepStrictEqual(told(0, "s1"), []);
  deepStrictEqual(told(1, "s1"), ["copies"]);
  deepStrictEqual(told(1, "s2", "s3"), ["copies"]);
  deepStrictEqual(told(1, "s1", "s2"), []);
  deepStrictEqual(told(2, "root"), []);
});

Deno.test("disk checker counts a copy whose disk was lost, or emptied as it was drained, while its word was on its way", () => {
  const told = (how: "lost" | "emptied", { goneMs, backMs }: { goneMs: number; backMs: number }) => {
    const s = new Script();
    s.owners = new Map([["s1", 1]]);
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0)).commit("s1", [row(0, 1, "05")]);
    s.commit("s2", [], [], [], [{ of: 2, key: 0, row: row(0, 1, "05") }]);
    if (how === "lost") s.lost("s2");
    else s.emptied("s2");
    s.pass(goneMs).start("s2", true).pass(backMs);
    s.answer(a);
    return s.all().wrong;
  };
  for (const how of ["lost", "emptied"] as const) {
    deepStrictEqual(told(how, { goneMs: 0, backMs: 1_000 }), [], how);
    deepStrictEqual(told(how, { goneMs: 0, backMs: 3_000 }), ["copies"], how);
    deepStrictEqual(told(how, { goneMs: 3_000, backMs: 0 }), ["copies"], `${how}, and back since`);
  }
});

Deno.test("disk checker counts no copy on a disk that was emptied and is not used again, and has the root have its rows", () => {
  const told = (isAtRoot: boolean) => {
    const s = new Script();
    s.owners = new Map([["s1", 1]]);
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0)).commit("s1", [row(0, 1, "05")]);
    s.commit("s2", [row(0, 1, "05")]);
    if (isAtRoot) s.commit("root", [row(0, 1, "05")]);
    s.emptied("s2").pass(3_000);
    s.answer(a);
    return s.all().wrong;
  };
  deepStrictEqual(told(true), []);
  deepStrictEqual(told(false), ["kept", "copies"]);
});

Deno.test("disk checker lets what a drained site was fed behind its word that it leaves go with its disk, where another has it", () => {
  const FED = "fed to a site that had said that it leaves, whose disk was emptied";
  const emptied = (happens: (s: Script) => void, isSum = false) => {
    const s = new Script();
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1"), b = s.request(1, "s2");
    if (isSum) s.write(a, "05", sum(1, 2)).write(b, "06", sum(2, 2));
    else s.write(a, "05", set(1, 0)).write(a, "06", set(2, 0)).write(b, "07", set(3, 1));
    s.answer(a, "crashed");
    s.answer(b, "crashed");
    happens(s);
    const { wrong, excused } = s.emptied("s2").all();
    return [...wrong, ...excused];
  };
  const at = (s: Script, site: string, ...rows: Held[]) => s.commit(site, rows);
  const older = row(0, 1, "05"), newer = row(0, 2, "06"), own = row(1, 3, "07");
  const cases: [string, (s: Script) => void, string[]][] = [
    ["after it", (s) => at(at(s, "s1", older).leaves("s2"), "s2", older), [FED]],
    ["with it, and behind", (s) => at(at(s, "s1", older), "s2", older).leaves("s2", 0), [FED]],
    ["newer after it", (s) => at(at(at(s, "s1", newer).leaves("s2"), "s2", older), "s2", newer), [FED]],
    ["before it", (s) => at(at(s, "s1", older), "s2", older).leaves("s2"), ["kept"]],
    ["before it, and newer after", (s) => {
      at(at(at(s, "s1", newer), "s2", older).leaves("s2"), "s2", newer);
    }, ["kept", FED]],
    ["before it, at the root, and newer after", (s) => {
      at(at(at(at(s, "s1", newer), "root", older), "s2", older).leaves("s2"), "s2", newer);
    }, [FED]],
    ["after it, and nobody else has it", (s) => at(s.leaves("s2"), "s2", older), ["kept"]],
    ["after it, and the other disk is lost", (s) => {
      at(at(s, "s1", older).leaves("s2"), "s2", older).lost("s1");
    }, ["kept"]],
    ["after it, and its own", (s) => at(at(s, "s1", own).leaves("s2"), "s2", own), ["kept"]],
    ["after a word from before a start", (s) => {
      at(at(s, "s1", older).leaves("s2").start("s2", false), "s2", older);
    }, ["kept"]],
    ["after it, at the root", (s) => at(at(s, "root", older).leaves("s2"), "s2", older), []],
  ];
  for (const [what, happens, wrong] of cases) deepStrictEqual(emptied(happens), wrong, what);
  const one = { ...sums(2, 1), stamp: "05" }, both = { ...sums(2, 1, 2), stamp: "06" };
  const ofSums: [string, (s: Script) => void, string[]][] = [
    ["after it", (s) => at(at(s, "s1", one).leaves("s2"), "s2", one), [FED]],
    ["after it, with its own", (s) => at(at(s, "s1", both).leaves("s2"), "s2", both), [FED, "kept"].sort()],
    ["before it", (s) => at(at(s, "s1", one), "s2", one).leaves("s2"), ["kept"]],
  ];
  for (const [what, happens, wrong] of ofSums) {
    deepStrictEqual(emptied(happens, true).sort(), wrong, `sum, ${what}`);
  }
});

Deno.test("disk checker lets a read below a site pass that had waited for its owners, and no other", () => {
  const read = (ms: number, ...excused: string[]) => {
    const s = new Script();
    s.parents = new Map([["root", null], ["core", "root"], ["s1", "core"]]);
    s.owners = new Map([["core", 2], ["s1", 2]]);
    for (const site of ["root", "core", "s1"]) s.start(site, true);
    const w = s.request(0, "core");
    s.write(w, "05", set(1, 0)).commit("core", [row(0, 1, "05")]);
    s.pass(ms);
    const r = s.request(1, "s1");
    s.commit("s1", [row(0, 1, "05")]).read(r, row(0, 1, "05"));
    s.answer(r);
    s.answer(w, "crashed");
    const all = s.all();
    deepStrictEqual(all.excused, excused);
    return all.wrong;
  };
  deepStrictEqual(read(400), ["copies"]);
  deepStrictEqual(read(500, "read below a site whose owners are silent"), []);
});

Deno.test("disk checker lets a read below a site pass that had the row before it had owners, and no other", () => {
  const read = (owned: "before" | "since" | "not yet" | "before it was lost", ...excused: string[]) => {
    const s = new Script();
    s.parents = new Map([["root", null], ["core", "root"], ["s1", "core"]]);
    s.owners = new Map([["core", 2], ["s1", 2]]);
    for (const site of ["root", "core", "s1"]) s.start(site, true);
    s.numbered("core", 2);
    if (owned.startsWith("before")) s.owned("core", 2);
    const w = s.request(0, "core");
    s.write(w, "05", set(1, 0)).commit("core", [row(0, 1, "05")]);
    if (owned === "since") s.owned("core", 2);
    // As it begins again its disk says so once more.
    if (owned === "before it was lost") s.lost("core").pass(5_000).start("core", true).numbered("core", 3);
    else if (owned !== "not yet") s.start("core", false).owned("core", 2);
    const r = s.request(1, "s1");
    s.commit("s1", [row(0, 1, "05")]).read(r, row(0, 1, "05"));
    s.answer(r);
    s.answer(w, "crashed");
    const all = s.all();
    deepStrictEqual(all.excused, excused, owned);
    return all.wrong;
  };
  deepStrictEqual(read("before"), ["copies"]);
  deepStrictEqual(read("since", "read below a site that had no owners yet"), []);
  deepStrictEqual(read("not yet", "read below a site that had no owners yet"), []);
  deepStrictEqual(read("before it was lost"), ["copies"]);
});

Deno.test("site checker reports a watcher that was told nothing, and what expires and differs in the end", () => {
  const s = causeAndEffect();
  s.watch = { site: "s1", keys: [0] };
  const all = [row(0, 1, "05"), row(1, 2, "06")];
  s.final("root", all).final("s1", all);
  deepStrictEqual(s.sites(), ["convergence"]);
  const until = { write: 1, key: 0, what: "expiring", expiresAtMs: 1_000 } as const;
  for (const [clockMs, wrong] of [[1_050, ["convergence"]], [1_101, []]] as const) {
    const t = new Script();
    for (const site of ["root", "s1"]) t.start(site, true);
    const a = t.request(0, "s1");
    t.write(a, "05", until).commit("s1", [row(0, 1, "05")]).commit("root", [row(0, 1, "05")]);
    t.answer(a);
    t.clockMs = clockMs;
    t.commit("root", []).final("root", []).final("s1", [row(0, 1, "05")]);
    deepStrictEqual(t.sites().filter((checker) => checker !== "durability"), wrong);
  }
});

Deno.test("site checker reports a site that goes by a time that is not the right one", () => {
  const times: [shownMs: number, endsMs: number, apartMs: number | null, wrong: string[]][] = [
    [120_000, 35_000, 30_000, []],
    [120_000, 9_000, 0, []],
    [140_000, 0, null, ["clock"]],
    [-3_600_000, 36_000, null, []],
    [0, 41_000, 30_000, ["clock"]],
    [0, 11_000, 0, ["clock"]],
    [0, -11_000, 0, ["clock"]],
  ];
  for (const [shownMs, endsMs, apartMs, wrong] of times) {
    const s = new Script();
    s.start("root", true);
    s.hasWrongClocks = apartMs === null;
    s.clocksApartMs = apartMs ?? 0;
    const alone = () => {
      s.aheadMs = 3_600_000;
      const request = s.request(0, "root");
      s.read(request, absent(0));
      s.answer(request);
    };
    s.numbered("root", 1);
    alone();
    s.start("s2", true).numbered("s2", 3).removed("s2");
    alone();
    s.start("s1", true).numbered("s1", 2);
    s.aheadMs = shownMs;
    const a = s.request(0, "root");
    s.read(a, absent(0));
    s.answer(a);
    s.aheadMs = endsMs;
    s.final("root", []);
    deepStrictEqual(s.sites(), wrong, `${shownMs} ${endsMs} ${apartMs}`);
  }
});

Deno.test("checkers refuse a history in which somebody acts who is not there, or presents what never left", () => {
  const strange = new Script();
  strange.request(0, "s1", [7]);
  throws(() => strange.sessions());
  const late = new Script();
  const a = late.request(0, "s1");
  late.answer(a);
  late.read(a, absent(0));
  throws(() => late.sessions());
});
