/**
 * One client of the soak: it writes, reads and moves, carries its token, and writes down what it was told, in the
 * records that the board's checker reads.
 *
 * S1  One request at a time; its record is complete before the next one begins.
 * S2  The token it presents is the newest it got.
 * S3  A write without an answer is recorded as unknown, and not tried again.
 * S4  Only an answer of the app says that a row is absent: a problem of the platform says nothing of rows.
 */
import { counterOf, rowsIn, seen, written } from "../examples/board/answers.ts";
import type { Edge } from "../examples/board/client.ts";
import type { History, Operation, Written } from "../examples/board/history.ts";
import type { Random } from "../examples/board/random.ts";

/** How the requests went, over all clients. */
export interface Tally {
  requests: number;
  moves: number;
  acknowledgedWrites: number;
  unknownWrites: number;
  /** By status and code: `200`, `503 source_unreachable`, `no answer`. */
  readonly answers: Record<string, number>;
  /** Answers that no fault explains. */
  readonly unexpected: string[];
}

/** Nobody has asked anything yet. */
export const emptyTally = (): Tally => ({
  requests: 0,
  moves: 0,
  acknowledgedWrites: 0,
  unknownWrites: 0,
  answers: {},
  unexpected: [],
});

/** One thing to do: the request, and what its answer would say. */
interface Action {
  readonly name: string;
  readonly path: string;
  readonly init: RequestInit;
  /** A row that an answer without rows shows to be absent. */
  readonly row?: string;
  readonly group?: string;
  readonly deletes?: string;
  readonly adds?: { readonly counter: string; readonly by: number };
  readonly counts?: string;
}

/** Few rows and many clients, so that what they do meets. */
const GROUPS = 4;
const IDS_PER_GROUP = 8;
const KEYS = 12;
const MOVE_SHARE = 0.3;
const FRESH_SHARE = 0.01;
/** A site that stands still answers nothing; a client goes elsewhere after this long. */
const PATIENCE_MS = 4_000;
/** What faults explain: the platform says which, and that one may try again. */
const EXPLAINED: ReadonlySet<string> = new Set([
  "source_unreachable",
  "store_unreachable",
  "owners_unreachable",
  "disk_failed",
  "overloaded",
  "isolate_killed",
  "wall_time",
]);

/** One client. */
export class SoakClient {
  readonly #name: string;
  readonly #edges: readonly Edge[];
  readonly #history: History;
  readonly #random: Random;
  readonly #tally: Tally;
  #record: Operation[];
  #edge: Edge;
  #token: string | null = null;
  #n = 0;

  constructor(name: string, edges: readonly Edge[], history: History, random: Random, tally: Tally) {
    this.#name = name;
    this.#edges = edges;
    this.#history = history;
    this.#random = random;
    this.#tally = tally;
    this.#record = history.begin();
    this.#edge = random.pick(edges);
  }

  /** Does the next thing; whether it got an answer of the app. */
  async step(): Promise<boolean> {
    const answered = await this.#request(this.#draw());
    if (!answered || this.#random.unit() < MOVE_SHARE) this.#move();
    if (answered && this.#random.unit() < FRESH_SHARE) {
      this.#token = null;
      this.#record = this.#history.begin();
    }
    return answered;
  }

  /** Reads everything there is at one edge; whether all of it was answered. */
  async readAllAt(edge: Edge): Promise<boolean> {
    this.#edge = edge;
    for (let group = 0; group < GROUPS; group++) {
      if (!await this.#request(listOf(`g${group}`))) return false;
    }
    for (let key = 0; key < KEYS; key++) {
      if (!await this.#request(valueOf(`k${key}`)) || !await this.#request(sumOf(`k${key}`))) return false;
    }
    return true;
  }

  #draw(): Action {
    const random = this.#random;
    const group = `g${random.below(GROUPS)}`;
    const id = `${group}.${random.below(IDS_PER_GROUP)}`;
    const key = `k${random.below(KEYS)}`;
    const value = { by: this.#name, n: ++this.#n };
    const by = 1 + random.below(3);
    const adds = { counter: counterOf(["sum", key]), by };
    const roll = random.below(100);
    if (roll < 20) return { name: "put", path: "/items", init: posted("POST", { id, group, ...value }) };
    if (roll < 24) {
      return { name: "delete", path: `/items/${id}`, init: { method: "DELETE" }, deletes: `items/${id}` };
    }
    if (roll < 44) return { name: "get", path: `/items/${id}`, init: {}, row: `items/${id}` };
    if (roll < 58) return listOf(group);
    if (roll < 70) {
      return { name: "set", path: `/kv/${key}`, init: posted("PUT", { value, add: by }), adds };
    }
    if (roll < 82) return valueOf(key);
    if (roll < 90) return { name: "add", path: `/sums/${key}/${by}`, init: { method: "POST" }, adds };
    return sumOf(key);
  }

  #move(): void {
    const others = this.#edges.filter((edge) => edge !== this.#edge);
    if (others.length === 0) return;
    this.#edge = this.#random.pick(others);
    this.#tally.moves++;
  }

  async #request(action: Action): Promise<boolean> {
    const startMs = performance.now();
    const site = this.#edge.id;
    const { status, json, token } = await this.#exchange(action);
    const endMs = performance.now();
    const done = status >= 200 && status < 300;
    const outcome = done ? "acknowledged" : status >= 400 && status < 500 ? "refused" : "unknown";
    const writes = (action.init.method ?? "GET") !== "GET";
    this.#count(site, action, status, json, writes);
    this.#record.push({
      site,
      interaction: action.name,
      startMs,
      endMs,
      outcome,
      seen: done && !writes ? this.#seen(action, json) : [],
      lists: done && action.group !== undefined ? [{ group: action.group, from: "", to: null }] : [],
      written: writes ? this.#written(action, outcome, json) : [],
      added: action.adds === undefined || outcome === "refused" ? [] : [action.adds],
      counted: done && action.counts !== undefined
        ? [{ counter: action.counts, value: Number(field(json, "sum")) }]
        : [],
    });
    if (done) this.#token = token ?? this.#token;
    return done;
  }

  #seen(action: Action, json: unknown) {
    const rows = rowsIn(json);
    for (const row of rows) this.#place(row.table, row.key[0] ?? "");
    const shown = rows.map((row) => seen(this.#history, row));
    const isAbsent = action.row !== undefined && rows.length === 0;
    return isAbsent ? [{ row: action.row, version: null, hash: null }] : shown;
  }

  #written(action: Action, outcome: Operation["outcome"], json: unknown): Written[] {
    if (outcome === "refused") return [];
    if (action.deletes !== undefined) {
      const version = outcome === "acknowledged" ? String(field(json, "deleted")) : null;
      return [{ row: action.deletes, version, hash: null }];
    }
    const rows = outcome === "acknowledged" ? rowsIn(json) : [];
    for (const row of rows) this.#place(row.table, row.key[0] ?? "");
    return rows.map((row) => written(this.#history, row));
  }

  /** An item's group is the part of its id before the dot, for good. */
  #place(table: string, id: string): void {
    if (table === "items") {
      this.#history.place(`items/${id}`, [{ group: id.split(".")[0] ?? "", place: id }]);
    }
  }

  #count(site: string, action: Action, status: number, json: unknown, writes: boolean): void {
    const tally = this.#tally;
    const code = status >= 400 ? String(field(json, "code") ?? "") : "";
    const kind = status === 0 ? "no answer" : `${status} ${code}`.trim();
    tally.requests++;
    tally.answers[kind] = (tally.answers[kind] ?? 0) + 1;
    if (writes && status >= 200 && status < 300) tally.acknowledgedWrites++;
    else if (writes && (status === 0 || status >= 500)) tally.unknownWrites++;
    if (status >= 400 && !EXPLAINED.has(code)) {
      tally.unexpected.push(`${site} answered ${kind} to ${action.name}: ${JSON.stringify(json)}`);
    }
  }

  async #exchange(action: Action): Promise<{ status: number; json: unknown; token: string | null }> {
    const headers = new Headers(action.init.headers);
    if (this.#token !== null) headers.set("sojourn-session", this.#token);
    try {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const response = await this.#edge.send(action.path, { ...action.init, headers, signal });
      const text = await response.text();
      return { status: response.status, json: parsed(text), token: response.headers.get("sojourn-session") };
    } catch {
      return { status: 0, json: null, token: null };
    }
  }
}

const listOf = (group: string): Action => ({ name: "list", path: `/groups/${group}`, init: {}, group });
const valueOf = (key: string): Action => ({ name: "value", path: `/kv/${key}`, init: {}, row: `kv/${key}` });
const sumOf = (key: string): Action => ({
  name: "sum",
  path: `/sums/${key}`,
  init: {},
  counts: counterOf(["sum", key]),
});

const posted = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

function field(json: unknown, name: string): unknown {
  return typeof json === "object" && json !== null ? Reflect.get(json, name) : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 200);
  }
}
