/**
 * The TLS files of a site, read again when they have changed: a certificate is renewed without a restart.
 *
 * Stages: read at the start (bad files stop it) → looked at every {@link LOOK_MS} → read when one of them has changed →
 * listeners are told, once the files are found to be usable.
 *
 * R1  Files that can't be read, or don't belong together, change nothing: the former ones stay in use, and the log says
 *     so once for each state of the files. A renewal writes two files, and may be seen between them.
 */
import { ConfigError, type SiteConfig } from "./config.ts";
import { readTls, type TlsFiles } from "./data_folder.ts";
import { fileMarkOf } from "./file_mark.ts";

/** Milliseconds between two looks at the files: certificates are renewed days before they end. */
const LOOK_MS = 10_000;

type Note = (level: "info" | "warn", event: string, fields: Record<string, unknown>) => void;

/** The TLS files of a site; see the file's header. */
export class Certificates {
  readonly #config: SiteConfig;
  readonly #note: Note;
  readonly #changed: (files: TlsFiles) => Promise<void>;
  readonly #paths: readonly string[];
  readonly #timer: ReturnType<typeof setInterval> | null;
  #mark: string;
  #turn: Promise<void> = Promise.resolve();

  /** @param changed puts other files into use; called one at a time. */
  constructor(
    config: SiteConfig,
    note: Note,
    changed: (files: TlsFiles) => Promise<void>,
    lookMs: number = LOOK_MS,
  ) {
    this.#config = config;
    this.#note = note;
    this.#changed = changed;
    this.#paths = Object.values(config.tls ?? {}).filter((path) => typeof path === "string");
    this.#mark = this.#marks();
    this.#timer = this.#paths.length === 0 ? null : setInterval(() => this.look(), lookMs);
  }

  /** Looks whether the files have changed; resolves when what follows from that is done. */
  look(): Promise<void> {
    return this.#turn = this.#turn.then(() => this.#look());
  }

  /** Ends the looking. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#turn;
  }

  async #look(): Promise<void> {
    const mark = this.#marks();
    if (mark === this.#mark) return;
    this.#mark = mark;
    try {
      const files = await readTls(this.#config);
      if (files === null) return;
      assertUsable(files);
      await this.#changed(files);
      this.#note("info", "certificates_read", { files: this.#paths.join(", ") });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#note("warn", "certificates_unread", { why, says: "those before it stay in use" });
    }
  }

  #marks(): string {
    return this.#paths.map(fileMarkOf).join("; ");
  }
}

/** Loads a certificate and its key as a listener would. @throws ConfigError where the system does not take them. */
export function assertUsable({ own }: TlsFiles): void {
  if (own === null) return;
  try {
    Deno.listenTls({ hostname: "127.0.0.1", port: 0, ...own }).close();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError(
      `tls.cert, tls.key: found a certificate and a key that cannot be used together: ${why}`,
    );
  }
}
