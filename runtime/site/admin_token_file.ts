/**
 * The admin token file of a site, read again when it has changed: a token is added or taken away without a restart.
 *
 * Stages: read at the start (a bad file stops it) → looked at when a token is checked, once a second at most → read
 * again when its time, size or inode has changed.
 *
 * F1  A file that cannot be read, or is no list of tokens, changes nothing: the tokens before it stay, and the log
 *     says so once. An empty file is a list: of nobody.
 * F2  Nothing of the file's contents is logged.
 */
import { AdminTokens, type TokenHolder, type TokenRoles } from "../deploy/mod.ts";
import { ConfigError } from "./config.ts";
import { fileMarkOf } from "./file_mark.ts";

/** Milliseconds between two looks at the file: whoever rotates a token waits this long at most; looking costs 10 µs. */
const LOOK_MS = 1_000;

type Note = (event: string, fields: Record<string, unknown>) => void;

/** The tokens that the file has now. */
export class AdminTokenFile implements TokenRoles {
  readonly #path: string;
  readonly #note: Note;
  #tokens: AdminTokens;
  /** Mark of the file's state when it was read. */
  #mark: string;
  #lookedMs = performance.now();
  #nowMs: () => number;

  private constructor(path: string, note: Note, nowMs: () => number) {
    this.#path = path;
    this.#note = note;
    this.#nowMs = nowMs;
    this.#lookedMs = nowMs();
    this.#mark = fileMarkOf(path);
    this.#tokens = new AdminTokens(Deno.readTextFileSync(path));
  }

  /** Opens the file. @throws ConfigError where the file cannot be read, or is no list of tokens. */
  static open(path: string, note: Note, nowMs: () => number = () => performance.now()): AdminTokenFile {
    try {
      return new AdminTokenFile(path, note, nowMs);
    } catch (error) {
      throw new ConfigError(`adminTokenFile: ${path}: ${error instanceof Error ? error.message : error}`);
    }
  }

  holderOf(headers: Headers): TokenHolder | null {
    const nowMs = this.#nowMs();
    if (nowMs - this.#lookedMs >= LOOK_MS) {
      this.#lookedMs = nowMs;
      this.#look();
    }
    return this.#tokens.holderOf(headers);
  }

  #look(): void {
    const mark = fileMarkOf(this.#path);
    if (mark === this.#mark) return;
    this.#mark = mark;
    try {
      this.#tokens = new AdminTokens(Deno.readTextFileSync(this.#path));
      this.#note("admin_tokens_read", { file: this.#path });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#note("admin_tokens_unread", { file: this.#path, why, says: "the tokens before it stay valid" });
    }
  }
}
