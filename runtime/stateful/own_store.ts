/**
 * The store as one stateful session sees it at its home: a session of its own, which has seen what the session's log
 * says, what its callers had seen, and what it has read and written since.
 *
 * O1  What a turn wrote is applied under the version that its log has: done again, here or at another site, it is the
 *     same row.
 * O2  A sum, and a write with checks, can't be the same row: it is written together with a mark that names its number,
 *     and not again where the mark is there.
 * O3  What is told to anyone waits until all of it is on disk here (`token`).
 * O4  Where hosts hold the log, a session goes on without what it and those attached to it had seen at a site that can't
 *     be asked: what it wrote itself since its last checkpoint it writes again. It is told that it does.
 */
import type { Effect, EffectMutation } from "../../functions/turns/mod.ts";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  ReadLevel,
  RowPage,
  StoredRow,
} from "../../functions/store_client.ts";
import {
  type AttachedSession,
  type PlainMutation,
  type Replica,
  type StoreMutation,
  StoreUnavailable,
  type TokenState,
} from "../../store/api.ts";
import { type Key, packKey } from "../../store/key.ts";
import { prefixRange } from "../../store/range.ts";
import { decodeSystem, encodeSystem } from "../deploy/records.ts";
import { type AppSpace, SessionStore, type StoreLimits } from "../gateway/session_store.ts";
import type { VersionWrites } from "../gateway/app_writes.ts";

/** What it needs of its site. */
export interface OwnStoreServices {
  readonly replica: Pick<Replica, "attach">;
  readonly limits: StoreLimits;
  readonly space: AppSpace;
  readonly writes: VersionWrites | undefined;
  readonly nowMs: () => number;
  /** O4: what is gone on without; left out: nothing is. */
  readonly missed?: ((error: StoreUnavailable) => void) | undefined;
}

/** A stateful session, and what tells it from others that had its name before. */
interface NamedBirth {
  readonly class: string;
  readonly id: string;
  readonly birth: string;
}

/** Marks of writes with checks: more than a handler has under way at once. */
const MARKS = 256;
/** A site that could not be asked is not asked again for so long: each time costs two seconds. */
const MISSING_MS = 10_000;
/** What there is of a site that can't be asked. */
const MISSING: ReadonlySet<string> = new Set(["source_unreachable", "source_lost"]);

/** See the file's header. */
export class OwnStore {
  readonly #services: OwnStoreServices;
  /** Of its marks: a session that is made later under the same name has others. */
  readonly #lead: readonly [string, string, string, string];
  readonly #session: AttachedSession;
  /** O4: sites, as tokens name them, and until when they are not asked. */
  #missing: Map<number, number> | null = null;
  /** The newest clock of what was gone on without: what is written is later. */
  #missedClock = 0;

  private constructor(
    services: OwnStoreServices,
    name: NamedBirth,
    session: AttachedSession,
  ) {
    this.#services = services;
    this.#lead = ["e", name.class, name.id, name.birth];
    this.#session = session;
  }

  /**
   * @param token the newest that the log names. What the home before wrote after it is asked for (it may be dead:
   * then those who stand in for it are asked).
   * @throws StoreUnavailable
   */
  static async open(
    services: OwnStoreServices,
    name: NamedBirth,
    token: TokenState | null,
  ): Promise<OwnStore> {
    const { replica } = services;
    if (token === null) return new OwnStore(services, name, await replica.attach(null));
    try {
      return new OwnStore(services, name, await replica.attach({ ...token, open: true }));
    } catch (error) {
      const why = orMissing(services)(error);
      const store = new OwnStore(services, name, await replica.attach(null));
      store.#misses(token, why);
      return store;
    }
  }

  /** From now on it has seen what this token names. @throws StoreUnavailable */
  see(token: TokenState): Promise<void> {
    return this.#session.see(token);
  }

  /** As {@link see}, of those attached, one token each (O4). @throws StoreUnavailable */
  async seeAll(tokens: readonly TokenState[]): Promise<void> {
    for (const token of tokens) {
      if ((this.#missing?.get(token.replica) ?? 0) > this.#services.nowMs()) continue;
      try {
        await this.see(token);
      } catch (error) {
        this.#misses(token, orMissing(this.#services)(error));
      }
    }
  }

  /** O4 */
  #misses({ replica, clock }: TokenState, why: StoreUnavailable): void {
    const { nowMs, missed } = this.#services;
    (this.#missing ??= new Map()).set(replica, nowMs() + MISSING_MS);
    this.#missedClock = Math.max(this.#missedClock, clock);
    missed?.(why);
  }

  /**
   * A clock value for an event: the version of the rows that its turn writes.
   *
   * @param room so many turns may need a value of their own from there on before the next is given.
   */
  tick(room = 1): number {
    const clock = this.#session.tick(room);
    if (clock > this.#missedClock) return clock;
    const first = this.#missedClock + 1;
    this.#missedClock += room;
    return first;
  }

  /** What it has seen, when all of that is on disk (O3). */
  async token(): Promise<TokenState> {
    const token = this.#session.token(false);
    await this.#session.durable();
    return token;
  }

  async get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]> {
    const rows: (StoredRow | null)[] = [];
    while (rows.length < keys.length) {
      const next = await this.#store().get(keys.slice(rows.length), level);
      if (next.length === 0) break;
      rows.push(...next);
    }
    return rows;
  }

  list(request: ListRequest): Promise<RowPage> {
    return this.#store().list(request);
  }

  /** A write with checks, which call `number` asked for (O2). */
  async commit(
    number: number,
    checks: readonly Check[],
    mutations: readonly Mutation[],
  ): Promise<CommitResult> {
    const key = packKey([...this.#lead, "c", number % MARKS]);
    const [mark] = await this.#store().get([key], "session");
    if (mark && numberOf(mark.value) === number) return { ok: true, versionstamp: mark.versionstamp };
    return await this.#store().commit(checks, [...mutations, {
      kind: "set",
      key,
      value: encodeSystem(number),
    }]);
  }

  /** Applies what a turn wrote (O1). */
  async apply(effect: Effect): Promise<void> {
    const last = new Map(effect.mutations.map((mutation) => [mutation.key, mutation]));
    const isPlain = (m: EffectMutation) => m.kind === "set" || m.kind === "delete";
    const plain = [...last.values()].filter(isPlain);
    const merges = effect.mutations.filter((m) => !isPlain(m));
    const { clock, replica } = effect;
    const rows = this.#absolute(plain, effect.atMs);
    if (rows.length > 0) {
      const written = this.#session.writeAs(rows as PlainMutation[], { clock, replica });
      await (this.#services.writes?.track(written) ?? written);
    }
    if (merges.length > 0) await this.#merge(effect.effect, merges);
  }

  /** O2 */
  async #merge(number: number, merges: readonly EffectMutation[]): Promise<void> {
    const key = packKey([...this.#lead, "s"]);
    const [mark] = await this.#store().get([key], "session");
    if (mark && numberOf(mark.value) >= number) return;
    await this.#store().commit([], [
      ...merges as readonly Mutation[],
      { kind: "set", key, value: encodeSystem(number) },
    ]);
  }

  /** Removes the marks: the stateful session has ended. */
  async forget(): Promise<void> {
    const range = prefixRange(packKey([...this.#lead]));
    for (;;) {
      const { rows, more } = await this.#store().list({
        ...range,
        limit: MARKS,
        reverse: false,
        level: "session",
      });
      if (rows.length > 0) {
        await this.#store().commit([], rows.map(({ key }) => ({ kind: "delete", key })));
      }
      if (!more) return;
    }
  }

  #absolute(mutations: readonly EffectMutation[], atMs: number): StoreMutation[] {
    return new SessionStore(this.#session, { ...this.#options(), nowMs: () => atMs })
      .absolute(mutations as readonly Mutation[]);
  }

  #store(): SessionStore {
    return new SessionStore(this.#session, this.#options());
  }

  #options() {
    const { space, limits, nowMs, writes } = this.#services;
    return { space, limits, nowMs, writes, use: { storeMs: 0, step: () => {} } };
  }
}

/** O4 */
const orMissing = ({ missed }: OwnStoreServices) => (error: unknown): StoreUnavailable => {
  if (missed === undefined || !(error instanceof StoreUnavailable) || !MISSING.has(error.code)) throw error;
  return error;
};

const numberOf = (value: Uint8Array): number => Number(decodeSystem(value));
