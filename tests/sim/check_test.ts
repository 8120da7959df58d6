import { deepStrictEqual } from "node:assert/strict";
import { checkSessions } from "./check_sessions.ts";
import { checkSites } from "./check_sites.ts";
import type { Held, History, HistoryEvent, Seen, Written } from "./history.ts";

/** Builds a history by hand: each call is the next event, at the next millisecond. */
class Script {
  readonly #events: HistoryEvent[] = [];
  #requests = 0;
  #issues = 0;
  readonly #open = new Set<number>();
  parents: ReadonlyMap<string, string | null> = new Map();

  get #atMs(): number {
    return this.#events.length;
  }

  request(session: number, site: string, presents: readonly number[] = []): number {
    const request = this.#requests++;
    this.#open.add(request);
    this.#events.push({ kind: "request", atMs: this.#atMs, request, session, site, presents });
    return request;
  }

  read(request: number, ...rows: Seen[]): this {
    this.#events.push({ kind: "read", atMs: this.#atMs, request, rows });
    return this;
  }

  write(request: number, stamp: string | null, ...writes: Written[]): this {
    this.#events.push({ kind: "write", atMs: this.#atMs, request, writes, checks: [] });
    this.#events.push({ kind: "wrote", atMs: this.#atMs, request, writes, stamp });
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
  ): this {
    const changes = covers.map((key) => [key, true] as const);
    this.#events.push({ kind: "commit", atMs: this.#atMs, site, rows, gone, covers: changes });
    return this;
  }

  start(site: string, blank: boolean): this {
    this.#events.push({ kind: "start", atMs: this.#atMs, site, blank });
    return this;
  }

  reborn(site: string): this {
    this.#events.push({ kind: "reborn", atMs: this.#atMs, site });
    return this;
  }

  final(site: string, rows: readonly Held[], pending = 0): this {
    this.#events.push({ kind: "final", atMs: this.#atMs, site, rows, covers: [0, 1, 2], pending });
    return this;
  }

  history(): History {
    return { keys: 3, root: "root", parents: this.parents, events: this.#events };
  }

  sessions(): string[] {
    return checkSessions(this.history()).map((violation) => violation.checker);
  }

  sites(): string[] {
    return checkSites(this.history()).map((violation) => violation.checker);
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
  const early = s.answer(a);
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
  s.write(w, null, set(1, 0)).write(w, "05", set(2, 1));
  const v = s.request(1, "s2");
  s.write(v, "05", set(3, 1)).read(v, row(0, 1, "04"), row(2, 9, "04"));
  deepStrictEqual(s.sessions(), ["integrity", "integrity", "integrity"]);
});

/** A write of key 0, then one of key 1 by a session that had seen it; both acknowledged at s1. */
function causeAndEffect(): Script {
  const s = new Script();
  for (const site of ["root", "s1", "s2"]) s.start(site, true);
  const a = s.request(0, "s1");
  s.write(a, "05", set(1, 0)).write(a, "06", set(2, 1));
  s.answer(a);
  return s.commit("s1", [row(0, 1, "05"), row(1, 2, "06")], [0, 1, 2]);
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
    s.write(d, stamp, gone(3, 0));
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
  const lost = causeAndEffect().commit("s2", [row(0, 1, "05")], [0]).start("s1", true);
  deepStrictEqual(lost.final("root", [row(0, 1, "05")]).sites(), []);
  const carried = causeAndEffect().commit("s2", [row(0, 1, "05")], [0]).start("s1", true);
  deepStrictEqual(carried.final("root", []).sites(), ["durability"]);
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
  deepStrictEqual(s.sites(), ["liveness", "liveness", "fault", "liveness"]);
});

Deno.test("site checker excuses a loss that is told until the site below has joined again", () => {
  for (const joins of [false, true]) {
    const s = new Script();
    s.parents = new Map([["root", null], ["c", "root"], ["s1", "c"], ["s2", "root"]]);
    for (const site of ["root", "c", "s1"]) s.start(site, true);
    s.start("c", true);
    if (joins) s.reborn("s1");
    const token = s.answer(s.request(0, "s1"));
    s.answer(s.request(0, "s2", [token]), "source_lost");
    deepStrictEqual(s.sites(), joins ? ["liveness"] : []);
    const running = s.request(1, "s1");
    s.answer(running, "source_lost");
    deepStrictEqual(s.sites(), joins ? ["liveness", "liveness"] : []);
  }
});

Deno.test("site checker does not take for lost what another site has yet to write down, or shows later", () => {
  const all = [row(1, 2, "06")];
  for (const where of ["memory", "disk"]) {
    const s = new Script();
    for (const site of ["root", "s1", "s2"]) s.start(site, true);
    const a = s.request(0, "s1");
    s.write(a, "05", set(1, 0));
    if (where === "disk") s.commit("s1", [row(0, 1, "05")]);
    s.start(where === "disk" ? "s1" : "s2", true);
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
  s.start("s2", true);
  const c = s.request(0, "s3", [own]);
  s.read(c, row(1, 3, "08")).read(c, absent(0));
  s.answer(c);
  deepStrictEqual(s.sessions(), ["read-your-writes"]);
  deepStrictEqual(s.commit("s3", [], [0]).sites(), []);
});
