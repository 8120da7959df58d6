/**
 * The secrets as a site sees them: a live view of the rows that it has, opened, for its isolates and for taking
 * values out of what it logs.
 *
 * Life: `SecretTable.open` reads the rows, and again whenever they change (live_view.ts); listeners are told of the
 * apps whose values changed → `close`.
 *
 * V1  A version gets the values of names that it declares, and below the root only of those that it does not keep at
 *     the root.
 * V2  A value that was replaced or deleted is still taken out of texts: requests that began before may show it.
 */
import type { Row } from "../../store/model/row.ts";
import { versionstamp } from "../../store/model/row.ts";
import { LiveView } from "../deploy/live_view.ts";
import type { SystemStore } from "../deploy/system_store.ts";
import { Redactor } from "./redaction.ts";
import type { SecretRing } from "./sealing.ts";
import { decodeSecret, secretOf, secretRange, type SecretTier, tiersAt } from "./secret_rows.ts";

/** Secrets that a version declares. */
export type DeclaredSecrets = Readonly<Record<string, { readonly at?: string | undefined }>>;

/** Services of the site that the table uses. */
export interface SecretTableServices {
  readonly system: SystemStore;
  readonly ring: SecretRing;
  readonly isRoot: boolean;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

interface KnownSecret {
  readonly stamp: string;
  /** Versionstamp of the secret's row; sorts as time does. */
  readonly written: string;
  /** The value; null: its row can't be opened here. */
  readonly value: string | null;
}

/** Secrets of one app here, by name. */
type AppSecrets = Map<string, KnownSecret>;

/** Former values of one app that are still taken out of texts. */
const FORMER_MAX = 32;

/** A live view of the secrets that a site has. */
export class SecretTable {
  readonly #services: SecretTableServices;
  #apps = new Map<string, AppSecrets>();
  readonly #former = new Map<string, [name: string, value: string][]>();
  readonly #redactors = new Map<string, Redactor>();
  readonly #listeners = new Set<(app: string) => void>();
  /** Callbacks after each reading, also of rows whose values are what they were. */
  readonly #waiting = new Set<() => void>();
  readonly #view: LiveView;

  private constructor(services: SecretTableServices) {
    this.#services = services;
    this.#view = new LiveView({
      read: () => this.#read(),
      failed: (error) => services.note("secrets_unread", { error: String(error) }),
    });
  }

  /** Reads the rows and watches them. Call when the replica is ready. */
  static async open(services: SecretTableServices): Promise<SecretTable> {
    const table = new SecretTable(services);
    await table.#view.follow(services.system, tiersAt(services.isRoot).map((tier) => secretRange(tier)));
    return table;
  }

  /** Returns the values that a version's isolates get here (V1). */
  values(app: string, declared: DeclaredSecrets): Readonly<Record<string, string>> {
    const out: Record<string, string> = {};
    const known = this.#apps.get(app);
    if (known === undefined) return out;
    for (const [name, { at }] of Object.entries(declared)) {
      const value = known.get(name)?.value ?? null;
      if (value !== null && (this.#services.isRoot || at !== "root")) out[name] = value;
    }
    return out;
  }

  /**
   * Waits until requests that begin here get a secret as it was written then, or as it was changed since; false when
   * time is up.
   *
   * @param stamp versionstamp of the secret's row.
   */
  async shows(app: string, name: string, stamp: string, timeoutMs: number): Promise<boolean> {
    const shown = Promise.withResolvers<boolean>();
    const look = () => {
      const known = this.#apps.get(app)?.get(name);
      if (known !== undefined && known.written >= stamp) shown.resolve(true);
    };
    this.#waiting.add(look);
    const timer = setTimeout(() => shown.resolve(false), timeoutMs);
    try {
      await this.refresh();
      look();
      return await shown.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  /** Returns a text of an app without the values of its secrets. */
  redact(app: string, text: string): string {
    let redactor = this.#redactors.get(app);
    if (redactor === undefined) {
      const known = [...this.#apps.get(app) ?? []].flatMap(([name, { value }]) =>
        value === null ? [] : [[name, value] as const]
      );
      redactor = new Redactor([...known, ...this.#former.get(app) ?? []]);
      this.#redactors.set(app, redactor);
    }
    return redactor.redact(text);
  }

  /** Adds a callback for each app whose values changed; the result removes it. */
  onChange(listener: (app: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when the view shows every change that the replica had applied when it was called. */
  refresh(): Promise<void> {
    return this.#view.refresh();
  }

  /** Ends the watch, and drops the values. */
  close(): void {
    this.#view.close();
    this.#listeners.clear();
    this.#apps = new Map();
  }

  async #read(): Promise<void> {
    const { system, isRoot } = this.#services;
    const before = this.#apps;
    const after = new Map<string, AppSecrets>();
    for (const tier of tiersAt(isRoot)) {
      for (const row of await system.list(secretRange(tier))) this.#take(row, tier, after);
    }
    if (this.#view.closed) return;
    this.#apps = after;
    for (const app of new Set([...before.keys(), ...after.keys()])) {
      if (!this.#differs(app, before.get(app), after.get(app))) continue;
      this.#redactors.delete(app);
      for (const listener of [...this.#listeners]) listener(app);
    }
    for (const look of this.#waiting) look();
  }

  #take(row: Row, tier: SecretTier, into: Map<string, AppSecrets>): void {
    if (row.value === null) return;
    const { app, name } = secretOf(row.key);
    const secrets = into.get(app) ?? new Map<string, KnownSecret>();
    into.set(app, secrets);
    const written = versionstamp(row), stamp = `${tier} ${written}`;
    const known = this.#apps.get(app)?.get(name);
    secrets.set(
      name,
      known?.stamp === stamp ? known : { stamp, written, value: this.#open(app, name, row.value) },
    );
  }

  #open(app: string, name: string, bytes: Uint8Array): string | null {
    try {
      const opened = this.#services.ring.open({ app, name }, decodeSecret(bytes).sealed);
      if (opened.ok) return opened.value;
      this.#services.note("secret_unread", { app, secret: name, why: opened.why });
    } catch {
      this.#services.note("secret_unread", { app, secret: name, why: "its row is no secret's" });
    }
    return null;
  }

  /** Reports whether an app's values differ from those before; keeps values that are gone (V2). */
  #differs(app: string, before: AppSecrets | undefined, after: AppSecrets | undefined): boolean {
    const gone = [...before ?? []].filter(([name, { value }]) => after?.get(name)?.value !== value);
    const added = [...after ?? []].some(([name, { value }]) => before?.get(name)?.value !== value);
    const former = this.#former.get(app) ?? [];
    for (const [name, { value }] of gone) if (value !== null) former.push([name, value]);
    if (former.length > 0) this.#former.set(app, former.slice(-FORMER_MAX));
    return added || gone.length > 0;
  }
}
