/**
 * Following of a change of the cluster from the command line: progress is told on stderr, once the change takes longer
 * than a moment, and Ctrl-C gives up the waiting with a line that says what has become of the change.
 *
 * F1  A command that was interrupted, or whose answer broke off (the root went away), exits 1, after it has said
 *     whether its change is live.
 */
import { type AdminClient, AnswerBrokenOff, type Progress, type ProgressEvent } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";
import type { Shell } from "./command.ts";

/** Milliseconds after which progress is told: whoever waits longer wants to know for what. */
const QUIET_MS = 1000;

/** A change that is one short request, which nothing takes back once it is sent. */
export interface SentChange {
  /** Command that tells whether the change was made. */
  readonly look: string;
  /** Text that is printed when it was made; else that its version is live. */
  readonly made?: string;
  /** Set where the change is made before it is followed. */
  readonly isMade?: true;
}

/** Progress of a change. */
export class ChangeProgress {
  readonly #shell: Shell;
  readonly #signal: AbortSignal | undefined;
  readonly #begunMs = performance.now();
  readonly #kept: string[] = [];
  readonly #timer: ReturnType<typeof setTimeout>;
  #evaluated: { app: string; version: string } | null = null;
  #live: { app: string; version: string } | null = null;

  constructor(shell: Shell) {
    this.#shell = shell;
    this.#signal = shell.interrupted?.();
    this.#timer = setTimeout(() => this.#flush(), QUIET_MS);
  }

  /** Progress for the client's calls. */
  readonly progress: Progress = { tell: (event) => this.#tell(event), signal: undefined };

  /** Prints a line now or, while the change takes no longer than a moment, never. */
  say(line: string): void {
    this.#kept.push(`${((performance.now() - this.#begunMs) / 1000).toFixed(1).padStart(5)} s  ${line}`);
    if (performance.now() - this.#begunMs >= QUIET_MS) this.#flush();
  }

  /**
   * Runs the change. Ctrl-C aborts it.
   *
   * @param sent given where the change is no deploy.
   * @throws AdminError `interrupted` (F1).
   */
  async run<T>(
    client: AdminClient | null,
    change: (progress: Progress) => Promise<T>,
    sent?: SentChange,
  ): Promise<T> {
    const signal = this.#signal;
    try {
      const result = await change({ ...this.progress, signal });
      signal?.throwIfAborted();
      return result;
    } catch (error) {
      if (signal?.aborted === true) throw new AdminError("interrupted", await this.#fate(client, sent));
      if (!(error instanceof AnswerBrokenOff)) throw error;
      // The root may have written rows that no other site has seen yet.
      const fate = this.#live === null && sent?.isMade !== true
        ? unknown(sent?.look ?? "versions APP")
        : await this.#fate(client, sent);
      throw new AdminError(error.code, `${error.message}; ${fate}`);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  /** Returns what has become of a change whose command was interrupted. */
  async #fate(client: AdminClient | null, sent: SentChange | undefined): Promise<string> {
    const live = this.#live;
    if (sent?.made !== undefined && (live !== null || sent.isMade === true)) return sent.made;
    if (live !== null) {
      return `it is live all the same: ${live.app} ${live.version}; only waiting was given up`;
    }
    if (sent !== undefined) return unknown(sent.look);
    const asked = this.#evaluated;
    if (asked === null || client === null) return "nothing was changed";
    const versions = await client.versions(asked.app).catch((error: unknown) =>
      error instanceof AdminError && error.code === "app_unknown" ? [] : null
    );
    if (versions === null) {
      return `whether ${asked.app} ${asked.version} is live is not known: no site answers`;
    }
    return versions.some(({ version }) => version === asked.version)
      ? `${asked.app} ${asked.version} is there all the same; sojourn rollback ${asked.app} takes it back`
      : "nothing was changed";
  }

  #tell(event: ProgressEvent): void {
    switch (event.event) {
      case "evaluated":
        this.#evaluated = { app: event.app, version: event.version };
        return this.say(`uploaded and evaluated: ${event.app} ${event.version.slice(0, 12)}`);
      case "live":
        this.#live = { app: event.app, version: event.version };
        return this.say("written at the root; waiting for the sites");
      case "site":
        return this.say(`${event.id} has followed (${event.ms} ms)`);
      case "removed":
        return this.say(`${event.rows} rows removed`);
      case "answer":
    }
  }

  #flush(): void {
    for (const line of this.#kept.splice(0)) this.#shell.err(line);
  }
}

const unknown = (look: string): string => `whether it was done is not known: sojourn ${look} tells`;
