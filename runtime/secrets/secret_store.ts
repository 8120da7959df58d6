/**
 * Setting, deleting, listing and placing secrets, at the root: the only place where their rows are written.
 *
 * Life: `open` (seals anew the values under an old key) → changes, one at a time → nothing to close.
 *
 * W1  A change that was answered is durable at the root.
 * W2  A value that may leave the root (a version that serves declares it so) has its row under "s"; every other value,
 *     also of an app or name that is not known yet, stays at the root.
 * W3  No value is in an answer, a message or a log line.
 */
import type { StoreMutation } from "../../store/api/api.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import type { SystemStore } from "../deploy/app_table.ts";
import { APP_NAME } from "../deploy/records.ts";
import { REDACTED_CHARS_MIN } from "./redaction.ts";
import type { SecretRing } from "./sealing.ts";
import {
  decodeSecret,
  encodeSecret,
  SECRET_BYTES_MAX,
  SECRET_NAME,
  secretKey,
  secretOf,
  secretRange,
  type SecretRecord,
  SECRETS_MAX,
  type SecretSource,
  type SecretTier,
  tiersAt,
} from "./secret_rows.ts";
import type { DeclaredSecrets } from "./secret_table.ts";

/** Services of the site that the writer uses. */
export interface SecretStoreServices {
  readonly system: SystemStore;
  readonly ring: SecretRing;
  /** Returns the secrets that an app's serving versions declare; null where no app of that name serves. */
  readonly declared: (app: string) => DeclaredSecrets | null;
  readonly nowMs: () => number;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** Refusal of a change, with its reason. */
export interface SecretRefusal {
  readonly ok: false;
  readonly code: "not_found" | "limit_value" | "secret_invalid";
  readonly message: string;
}

/** Result of setting a secret. */
export interface SecretSet {
  readonly ok: true;
  /** False where the secret had this value already. */
  readonly changed: boolean;
  readonly tier: SecretTier;
  /** Versionstamp of the secret's row: a site that has the value shows it. */
  readonly stamp: string;
  /** True where the app's current version declares the secret; null where there is no such app yet. */
  readonly declared: boolean | null;
  /** True where the value is long enough to be taken out of logs. */
  readonly redacted: boolean;
}

/** A secret as operators see it. */
export interface SecretSummary {
  readonly name: string;
  /** Time at which its value was set; null: it has none. */
  readonly setMs: number | null;
  readonly tier: SecretTier;
  readonly declared: boolean;
  readonly from: SecretSource | null;
  /** False where it is sealed under a cluster secret that is gone. */
  readonly readable: boolean;
}

interface StoredSecret {
  readonly tier: SecretTier;
  readonly row: Row;
  readonly record: SecretRecord;
}

const refuse = (code: SecretRefusal["code"], message: string): SecretRefusal => ({
  ok: false,
  code,
  message,
});

/** Returns why a text can't be a secret's value; null where it can. */
export function valueProblem(value: string): string | null {
  if (value === "") return "a secret's value can't be empty";
  if (!value.isWellFormed()) return "a secret's value is text";
  const bytes = new TextEncoder().encode(value).length;
  return bytes <= SECRET_BYTES_MAX
    ? null
    : `a secret's value has at most ${SECRET_BYTES_MAX} bytes, not ${bytes}`;
}

/** The writer of secrets. One per root process. */
export class SecretStore {
  readonly #services: SecretStoreServices;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(services: SecretStoreServices) {
    this.#services = services;
  }

  /** Opens the writer, and seals anew the values under an older key than the newest. */
  static async open(services: SecretStoreServices): Promise<SecretStore> {
    const store = new SecretStore(services);
    await store.#inTurn(() => store.#reseal());
    return store;
  }

  /** Sets a secret from its sealed value, as the site where it arrived sealed it. */
  set(
    app: string,
    name: string,
    sealed: Uint8Array<ArrayBuffer>,
    from: SecretSource,
  ): Promise<SecretSet | SecretRefusal> {
    return this.#inTurn(() => this.#set(app, name, sealed, from));
  }

  /** Deletes a secret's value. */
  delete(app: string, name: string): Promise<{ readonly ok: true } | SecretRefusal> {
    return this.#inTurn(async () => {
      const found = (await this.#of(app)).filter((stored) => secretOf(stored.row.key).name === name);
      if (found.length === 0) {
        return refuse("not_found", `app ${app} has no value for a secret called ${JSON.stringify(name)}`);
      }
      await this.#write(found.map(({ row }) => ({ kind: "delete", key: row.key })));
      return { ok: true };
    });
  }

  /** Returns the apps that have secrets. */
  async apps(): Promise<Set<string>> {
    const out = new Set<string>();
    for (const tier of tiersAt(true)) {
      for (const row of await this.#services.system.list(secretRange(tier))) {
        if (row.value !== null) out.add(secretOf(row.key).app);
      }
    }
    return out;
  }

  /** Deletes all secrets of an app that is gone. */
  deleteApp(app: string): Promise<void> {
    return this.#inTurn(async () => {
      const found = await this.#of(app);
      await this.#write(found.map(({ row }) => ({ kind: "delete", key: row.key })));
    });
  }

  /** Returns the secrets of an app, declared or set; null where there is neither such an app nor a value. */
  async list(app: string): Promise<SecretSummary[] | null> {
    const declared = this.#services.declared(app);
    const stored = await this.#of(app);
    if (declared === null && stored.length === 0) return null;
    const names = new Map<string, SecretSummary>();
    for (const [name, { at }] of Object.entries(declared ?? {})) {
      const tier = at === "root" ? "root" : "everywhere";
      names.set(name, { name, setMs: null, tier, declared: true, from: null, readable: true });
    }
    for (const { tier, row, record: { sealed, setMs, from } } of stored) {
      const { name } = secretOf(row.key);
      const readable = this.#services.ring.open({ app, name }, sealed).ok;
      names.set(name, { name, setMs, tier, declared: names.has(name), from, readable });
    }
    return [...names.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Moves the rows of an app's secrets where a declaration wants them (W2).
   *
   * @param widen true to move rows only towards the sites: before the declaring version goes live, while another still
   * serves.
   */
  place(app: string, declared: DeclaredSecrets, options: { widen: boolean }): Promise<void> {
    return this.#inTurn(async () => {
      const moves: StoreMutation[] = [];
      for (const { tier, row, record } of await this.#of(app)) {
        const { name } = secretOf(row.key);
        const wanted = tierOf(declared, name);
        if (wanted === tier || (options.widen && wanted === "root")) continue;
        moves.push(
          { kind: "delete", key: row.key },
          { kind: "set", key: secretKey(wanted, app, name), value: encodeSecret(record) },
        );
        this.#services.note("secret_moved", { app, secret: name, to: wanted });
      }
      await this.#write(moves);
    });
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #set(
    app: string,
    name: string,
    sealed: Uint8Array<ArrayBuffer>,
    from: SecretSource,
  ): Promise<SecretSet | SecretRefusal> {
    const { ring, nowMs } = this.#services;
    const wrong = nameProblem(app, name);
    if (wrong !== null) return refuse("secret_invalid", wrong);
    const opened = ring.open({ app, name }, sealed);
    if (!opened.ok) return refuse("secret_invalid", `the value of ${name} can't be opened: ${opened.why}`);
    const bad = valueProblem(opened.value);
    if (bad !== null) return refuse("secret_invalid", bad);
    const stored = await this.#of(app);
    const [known] = stored.filter((each) => secretOf(each.row.key).name === name);
    if (known === undefined && stored.length >= SECRETS_MAX) {
      return refuse("limit_value", `app ${app} has ${stored.length} secrets; ${SECRETS_MAX} are possible`);
    }
    const declared = this.#services.declared(app);
    const tier = tierOf(declared ?? {}, name);
    const before = known === undefined ? null : ring.open({ app, name }, known.record.sealed);
    const changed = before === null || !before.ok || before.value !== opened.value ||
      known?.tier !== tier || known.record.from !== from;
    if (changed) {
      const value = encodeSecret({ sealed, setMs: nowMs(), from });
      await this.#write([
        { kind: "set", key: secretKey(tier, app, name), value },
        ...(known === undefined || known.tier === tier
          ? []
          : [{ kind: "delete", key: known.row.key } as const]),
      ]);
    }
    const [now] = (await this.#of(app)).filter((each) => secretOf(each.row.key).name === name);
    return {
      ok: true,
      changed,
      tier,
      stamp: now === undefined ? "" : versionstamp(now.row),
      declared: declared === null ? null : Object.hasOwn(declared, name),
      redacted: opened.value.length >= REDACTED_CHARS_MIN,
    };
  }

  async #reseal(): Promise<void> {
    const { system, ring, note } = this.#services;
    const writes: StoreMutation[] = [];
    for (const tier of tiersAt(true)) {
      for (const row of await system.list(secretRange(tier))) {
        if (row.value === null) continue;
        const record = decodeSecret(row.value);
        const place = secretOf(row.key);
        if (ring.isCurrent(record.sealed)) continue;
        const opened = ring.open(place, record.sealed);
        if (!opened.ok) note("secret_unread", { app: place.app, secret: place.name, why: opened.why });
        else {
          const value = encodeSecret({ ...record, sealed: ring.seal(place, opened.value) });
          writes.push({ kind: "set", key: row.key, value });
        }
      }
    }
    if (writes.length > 0) note("secrets_resealed", { secrets: writes.length });
    await this.#write(writes);
  }

  async #of(app: string): Promise<StoredSecret[]> {
    const out: StoredSecret[] = [];
    for (const tier of tiersAt(true)) {
      for (const row of await this.#services.system.list(secretRange(tier, app))) {
        if (row.value !== null) out.push({ tier, row, record: decodeSecret(row.value) });
      }
    }
    return out;
  }

  /** Writes rows, and resolves when they are durable (W1). */
  async #write(mutations: readonly StoreMutation[]): Promise<void> {
    if (mutations.length === 0) return;
    const { system } = this.#services;
    await system.write(mutations);
    await system.durable();
  }
}

/** Returns the tier that a name has by a declaration (W2). */
function tierOf(declared: DeclaredSecrets, name: string): SecretTier {
  return Object.hasOwn(declared, name) && declared[name]?.at !== "root" ? "everywhere" : "root";
}

function nameProblem(app: string, name: string): string | null {
  if (!APP_NAME.test(app)) return `${JSON.stringify(app.slice(0, 60))} is no app's name`;
  if (SECRET_NAME.test(name)) return null;
  return `${
    JSON.stringify(name.slice(0, 80))
  } is no secret's name: a letter or _, then at most 63 letters, ` +
    "digits, _ and -";
}
