/**
 * A site's log: one line an event on standard error, for people by default, as JSON objects on request. Standard
 * output stays free for what a command prints. The last lines stay in memory, where `logs` finds them
 * (runtime/observe). Every line of an app goes through {@link SiteLog.app}, with its secrets taken out by the caller
 * (gateway/app_runner.ts, AR5).
 *
 * L2  Text of others in a line (apps, clients, other sites) can't steer the terminal that it is read on.
 */
import type { SiteId } from "../../store/model/ports.ts";
import { LOG_LEVELS, type LogLevel } from "../observe/log_line.ts";
import { LogRing } from "../observe/log_ring.ts";
import { visible, visibleJson } from "../observe/visible.ts";

export type { LogLevel };

/** Fields of a line beside its event. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A line of an app's console. */
export interface AppLogLine {
  readonly app: string;
  readonly version: string;
  readonly level: string;
  readonly text: string;
  /**
   * Trace id: 32 hexadecimal digits, the same for all lines of a request; a trace of that id exists where the request
   * is recorded.
   */
  readonly traceId?: string | undefined;
  /** Span id of the call that printed the line, where the request is recorded. */
  readonly spanId?: string | undefined;
}

/** Writes lines for one site. */
export class SiteLog {
  readonly #site: SiteId;
  readonly #json: boolean;
  readonly #level: LogLevel;
  readonly #encoder = new TextEncoder();
  /** The last lines, for `logs`. */
  readonly ring = new LogRing();

  /**
   * @param level lowest level of the site's own lines that is printed: those below it are in the ring alone; an app's
   * lines are all printed.
   */
  constructor(site: SiteId, format: "human" | "json", level: LogLevel = "debug") {
    this.#site = site;
    this.#json = format === "json";
    this.#level = level;
  }

  /** Writes one event. */
  line(level: LogLevel, event: string, fields: LogFields = {}): void {
    const atMs = Date.now();
    if (LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.#level)) this.#print(atMs, level, event, fields);
    // The site's lines about an app are found among the app's own lines.
    const app = typeof fields.app === "string" ? { app: fields.app } : {};
    this.ring.add({ atMs, site: this.#site, ...app, level, text: event + human(fields) });
  }

  /** Writes a line that an app printed (gateway/app_runner.ts, AR5). */
  app({ app, version, level: said, text, traceId, spanId }: AppLogLine): void {
    const level: LogLevel = said === "error" || said === "warn" || said === "debug" ? said : "info";
    const atMs = Date.now();
    // People read a line a hundred times before they look for its trace; a collector of lines wants it in each.
    const told = this.#json || spanId !== undefined ? { traceId, spanId } : {};
    this.#print(atMs, level, "app", { app, text, ...told });
    this.ring.add({
      atMs,
      site: this.#site,
      app,
      version,
      level,
      text,
      ...traceId === undefined ? {} : { traceId },
    });
  }

  #print(atMs: number, level: LogLevel, event: string, fields: LogFields): void {
    const at = new Date(atMs).toISOString();
    const text = this.#json
      ? visibleJson(JSON.stringify({ at, level, site: this.#site, event, ...fields }))
      : visible(`${at.slice(11, 23)} ${this.#site.padEnd(7)} ${MARK[level]} ${event}${human(fields)}`);
    this.#write(text + "\n");
  }

  #write(text: string): void {
    try {
      Deno.stderr.writeSync(this.#encoder.encode(text));
    } catch {
      // The reader of the log's pipe has gone; a site does not stop for that.
    }
  }
}

const MARK: Readonly<Record<LogLevel, string>> = { debug: "·", info: " ", warn: "!", error: "✗" };

function human(fields: LogFields): string {
  let out = "";
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) {
      out += ` ${name}=${typeof value === "string" ? quoted(value) : JSON.stringify(value)}`;
    }
  }
  return out;
}

const quoted = (text: string): string => /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
