/**
 * A site's log: one line an event on standard error, for people by default, as JSON objects on request. Standard
 * output stays free for what a command prints.
 */
import type { SiteId } from "../../store/ports.ts";

/** How grave a line is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Fields of a line beside its event. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A line of an app's console. */
export interface AppLogLine {
  readonly app: string;
  readonly version: string;
  readonly level: string;
  readonly text: string;
}

/** Writes lines for one site. */
export class SiteLog {
  readonly #site: SiteId;
  readonly #json: boolean;
  readonly #encoder = new TextEncoder();

  constructor(site: SiteId, format: "human" | "json") {
    this.#site = site;
    this.#json = format === "json";
  }

  /** Writes one event. */
  line(level: LogLevel, event: string, fields: LogFields = {}): void {
    const atMs = Date.now();
    const text = this.#json
      ? JSON.stringify({ at: new Date(atMs).toISOString(), level, site: this.#site, event, ...fields })
      : `${new Date(atMs).toISOString().slice(11, 23)} ${this.#site.padEnd(7)} ${MARK[level]} ${event}${
        human(fields)
      }`;
    this.#write(text + "\n");
  }

  /** Writes a line that an app printed. */
  app(line: AppLogLine): void {
    const level: LogLevel = line.level === "error" || line.level === "warn" ? line.level : "info";
    this.line(level, "app", { app: line.app, text: line.text });
  }

  #write(text: string): void {
    try {
      Deno.stderr.writeSync(this.#encoder.encode(text));
    } catch {
      // The reader of the log has gone; a site does not stop for that.
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
