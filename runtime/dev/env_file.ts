/**
 * The `.env` file beside an app, in dev: values for the secrets that the app declares.
 *
 * Life: made with the app → `applied` after each deploy, and whenever the file changes → nothing to close.
 *
 * E1  Only names that the app declares are set; the others are reported, once, and left.
 * E2  A name that leaves the file loses its value, unless a command had set it.
 * E3  No value is shown: failures are told by names.
 */
import { basename, join } from "node:path";
import { parseEnv } from "node:util";
import { AdminClient } from "../deploy/client.ts";
import { AdminError } from "../deploy/admin_api.ts";

/** Address and token of the cluster whose secrets are set. */
export interface EnvTarget {
  readonly url: string;
  readonly token: string;
}

const FILE = ".env";

/** The `.env` file of one app. */
export class EnvFile {
  readonly path: string;
  readonly #client: AdminClient;
  readonly #say: (line: string) => void;
  readonly #said = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(folder: string, target: EnvTarget, say: (line: string) => void) {
    this.path = join(folder, FILE);
    this.#client = new AdminClient(target);
    this.#say = say;
  }

  /** Sets the secrets of the file; one call after the other. Never rejects: failures are reported. */
  apply(app: string): Promise<void> {
    const turn = this.#turn.then(() => this.#apply(app)).catch((error: unknown) => {
      const why = error instanceof AdminError ? `${error.code}: ${error.message}` : nameOf(error);
      this.#say(`${this.path}: ${why}; the secrets stay as they were`);
    });
    this.#turn = turn;
    return turn;
  }

  async #apply(app: string): Promise<void> {
    const values = await this.#read();
    if (values === null) return await this.#drop(app, new Set());
    const known = await this.#client.secrets(app);
    const declared = new Set(known.filter((secret) => secret.declared).map((secret) => secret.name));
    const done: string[] = [];
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined || value === "") continue;
      if (!declared.has(name)) {
        this.#once(`${this.path}: ${app} does not declare ${name} in secrets; it is left`);
      } else if ((await this.#client.setSecret(app, name, value, "dotenv")).changed) done.push(name);
    }
    const named = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
    await this.#drop(app, new Set(named.map(([name]) => name)));
    if (done.length > 0) this.#say(`${app}: ${done.join(", ")} set from ${this.path}`);
  }

  /** Deletes the values of names that have left the file (E2). */
  async #drop(app: string, named: ReadonlySet<string>): Promise<void> {
    for (const { name, from } of await this.#client.secrets(app)) {
      if (from !== "dotenv" || named.has(name)) continue;
      await this.#client.deleteSecret(app, name);
      this.#say(`${app}: ${name} has no value any more, as it left ${this.path}`);
    }
  }

  async #read(): Promise<Readonly<Record<string, string | undefined>> | null> {
    let text: string;
    try {
      text = await Deno.readTextFile(this.path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
    await this.#advise();
    return parseEnv(text);
  }

  /** Warns of a file of secrets that others can read, or that is about to be published. */
  async #advise(): Promise<void> {
    const { mode } = await Deno.stat(this.path);
    if (mode !== null && (mode & 0o077) !== 0) {
      this.#once(`${this.path} can be read by others on this machine: chmod 600 ${this.path}`);
    }
    if (await isTracked(this.path)) {
      this.#once(`git does not ignore ${this.path}: echo ${FILE} >> .gitignore`);
    }
  }

  #once(line: string): void {
    if (this.#said.has(line)) return;
    this.#said.add(line);
    this.#say(line);
  }
}

/** Reports whether git would take the file in; false where there is no git, or no repository. */
async function isTracked(path: string): Promise<boolean> {
  try {
    const { code } = await new Deno.Command("git", {
      args: ["check-ignore", "--quiet", FILE],
      cwd: path.slice(0, -FILE.length),
      stdout: "null",
      stderr: "null",
    }).output();
    return code === 1; // 0: ignored; 128: no repository
  } catch {
    return false;
  }
}

/** Returns an error's name only: the message of a parser may quote what it read (E3). */
const nameOf = (error: unknown): string => error instanceof Error ? error.name : "it can't be read";

/** Reports whether a path is that of a `.env` file: its changes deploy nothing. */
export const isEnvFile = (path: string): boolean => basename(path) === FILE;
