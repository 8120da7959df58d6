/**
 * Stateful sessions that stand still, and why: system rows, which every site has, so that a site that becomes the home
 * of one knows it, whichever site is asked can tell it, and none is tried again by itself.
 *
 *   ["s", "parked", app, class, id] → ParkedReport
 *
 * Life: `follow` when the replica is ready → `park` and `drop` → `close`.
 *
 * PT1  A report that was parked or dropped here counts here at once, whether or not its row is written yet.
 * PT2  A report is of one version of the app: another version may go on, and is let try.
 * PT3  Beyond REPORTS_MAX a report has no detail: one bad deploy may park all sessions of an app.
 */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import type { ParkedReport, ParkedSessions } from "../../functions/sessions/serve/ports.ts";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { SYSTEM } from "../../store/api/api.ts";
import { z } from "zod";
import { encodeSystem } from "../../store/model/system_value.ts";
import { LiveView } from "../deploy/live_view.ts";
import type { SystemStore } from "../deploy/system_store.ts";

const schema = z.object({
  code: z.string(),
  message: z.string(),
  detail: z.record(z.string(), z.unknown()),
  version: z.string(), // PT2
  site: z.string(),
  atMs: z.number(),
}) satisfies z.ZodType<ParkedReport>;

/** Characters of a report, which is a row at every site. */
const REPORT_CHARS_MAX = 16 * 1024;
const TEXT_CHARS_MAX = 2_000;
/** Reports with a detail: 16 MB at every site; those after them take some 500 bytes each. */
const REPORTS_MAX = 1_000;
const SHORT_CHARS_MAX = 200;
const SPACE = "parked";
const RANGE = prefixRange(packKey([SYSTEM, SPACE]));

const keyOf = ({ app, class: name, id }: StatefulName): Key => packKey([SYSTEM, SPACE, app, name, id]);

/** Table of sessions that stand still (see the file's header). */
export class ParkedTable implements ParkedSessions {
  readonly #system: SystemStore;
  readonly #note: (event: string, detail: Record<string, unknown>) => void;
  readonly #view: LiveView;
  readonly #dropped = new Set<(name: StatefulName) => void>();
  readonly #writing = new Set<Promise<void>>();
  #rows = new Map<Key, ParkedReport>();
  /** Reports that are not in the rows yet; null: dropped (PT1). */
  readonly #own = new Map<Key, ParkedReport | null>();

  constructor(system: SystemStore, note: (event: string, detail: Record<string, unknown>) => void) {
    this.#system = system;
    this.#note = note;
    this.#view = new LiveView({
      read: () => this.#read(),
      failed: (error) => note("parked_unread", { error: String(error) }),
    });
  }

  /** Follows the rows of this site; resolves when they are read. */
  follow(): Promise<void> {
    return this.#view.follow(this.#system, [RANGE]);
  }

  close(): void {
    this.#view.close();
  }

  get(name: StatefulName): ParkedReport | null {
    const key = keyOf(name);
    const own = this.#own.get(key);
    return own !== undefined ? own : this.#rows.get(key) ?? null; // PT1
  }

  /** All reports. */
  *all(): IterableIterator<{ readonly name: StatefulName; readonly report: ParkedReport }> {
    for (const key of new Set([...this.#rows.keys(), ...this.#own.keys()])) {
      const own = this.#own.get(key);
      const report = own !== undefined ? own : this.#rows.get(key) ?? null;
      if (report !== null) yield { name: nameOf(key), report };
    }
  }

  /** Calls back when a session stands still no more. */
  onDrop(dropped: (name: StatefulName) => void): () => void {
    this.#dropped.add(dropped);
    return () => void this.#dropped.delete(dropped);
  }

  /** Reports that a session stands still. */
  park(name: StatefulName, report: ParkedReport): Promise<void> {
    const isOneOfMany = this.#rows.size + this.#own.size >= REPORTS_MAX;
    return this.#change(name, isOneOfMany ? shortened(report) : bounded(report));
  }

  /** Drops the report of a session: it may go on, or is no more. */
  async drop(name: StatefulName): Promise<void> {
    if (this.get(name) === null) return;
    const done = this.#change(name, null);
    for (const tell of this.#dropped) tell(name);
    await done;
  }

  /** Resolves when what was parked and dropped here so far is written, or could not be. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #change(name: StatefulName, report: ParkedReport | null): Promise<void> {
    const done = this.#write(name, report).finally(() => this.#writing.delete(done));
    this.#writing.add(done);
    return done;
  }

  async #write(name: StatefulName, report: ParkedReport | null): Promise<void> {
    const key = keyOf(name);
    this.#own.set(key, report); // PT1
    try {
      await this.#system.write([
        report === null ? { kind: "delete", key } : { kind: "set", key, value: encodeSystem(report) },
      ]);
      await this.#view.refresh();
      if (this.#own.get(key) === report) this.#own.delete(key);
    } catch (error) {
      this.#note("parked_unwritten", { ...name, error: String(error) });
    }
  }

  async #read(): Promise<void> {
    const before = this.#rows;
    const rows = new Map<Key, ParkedReport>();
    for (const { key, value } of await this.#system.list(RANGE)) {
      if (value === null) continue;
      const known = schema.safeParse(decoded(value));
      if (known.success) rows.set(key, known.data);
    }
    this.#rows = rows;
    for (const key of before.keys()) {
      if (rows.has(key) || this.#own.has(key)) continue;
      for (const tell of this.#dropped) tell(nameOf(key));
    }
  }
}

const decoded = (value: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(value.subarray(1)));
  } catch {
    return null;
  }
};

function nameOf(key: Key): StatefulName {
  const [, , app = "", name = "", id = ""] = unpackKey(key);
  return { app: String(app), class: String(name), id: String(id) };
}

/** Returns a report without its detail (PT3). */
const shortened = (report: ParkedReport): ParkedReport => ({
  ...report,
  message: report.message.slice(0, SHORT_CHARS_MAX),
  detail: { isCut: true },
});

/** Returns a report as it fits into a row. */
function bounded(report: ParkedReport): ParkedReport {
  const message = report.message.slice(0, TEXT_CHARS_MAX);
  const cut = { ...report, message };
  return JSON.stringify(cut).length <= REPORT_CHARS_MAX ? cut : { ...cut, detail: { isCut: true } };
}
