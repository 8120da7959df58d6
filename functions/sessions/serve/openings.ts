/**
 * Openings of the stateful sessions of a site: a session's home, the code that its log is of, its store, and an isolate,
 * or a standby that has followed it. They note why a home could not be opened, for operators to see, and open one
 * without the clients that hold its log and do not come back, when an operator says so
 * (functions/sessions/log/host_owners.ts, HO8).
 */
import { HomeError, type Homes, type OpenedSession, type StatefulName } from "../home/mod.ts";
import type { Replica } from "../../../store/api/api.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { Problem } from "../../vocabulary/problem.ts";
import { OwnStore, type OwnStoreServices } from "./own_store.ts";
import { joinPieces, openPiece } from "./pieces.ts";
import type { SessionSends } from "./ports.ts";
import type { RunListener } from "./run_over.ts";
import { ClockLead, RunVersions } from "./run_versions.ts";
import { salvage, type Salvaged } from "./salvage.ts";
import { type CallingSite, SessionCalls } from "./made_calls.ts";
import { mapKey, shownSession } from "./session_name.ts";
import { SessionRun } from "./session_run.ts";
import { sessionOf, Standby, StandbyFailed } from "./standby.ts";
import {
  type CodeTable,
  currentVersion,
  isShared,
  type SessionCode,
  versionOfLog,
  writtenBy,
} from "./versions.ts";

/** Number of failed openings that are noted, the latest ones, at some 300 bytes each. */
const UNOPENED_MAX = 1_000;
/** Bytes of a session's seed that tell it from others of one name: enough that no two are alike. */
const BIRTH_BYTES = 8;

/** Site, as opening its sessions needs it. */
export interface OpeningPorts extends CallingSite {
  readonly homes: Homes;
  readonly apps: CodeTable<SessionCode>;
  /** Returns a standby that has followed a session up to that entry, with that code (standbys.ts). */
  readonly standby: (name: StatefulName, version: string, last: number) => Promise<Standby | null>;
  readonly replica: Pick<Replica, "status">;
  readonly sends: SessionSends;
  /** Reads the wall clock. */
  readonly nowMs: () => number;
}

/** See the file's header. */
export class Openings {
  readonly #ports: OpeningPorts;
  readonly #log: (name: StatefulName, level: string, text: string) => void;
  readonly #lead: ClockLead;
  /** Services of the stores of each code, for all of its sessions: there may be many. */
  readonly #stores = new WeakMap<SessionCode, OwnStoreServices>();
  readonly #asked = new Map<string, "forced" | "here">();
  readonly #unopened = new Map<string, string>();

  /** @param log logs a line of a session. */
  constructor(ports: OpeningPorts, log: (name: StatefulName, level: string, text: string) => void) {
    this.#ports = ports;
    this.#log = log;
    this.#lead = new ClockLead(() => ports.nowMs());
  }

  /**
   * Opens a session, and starts its run. @throws HomeError as `Homes.open`, Problem, StoreUnavailable, RunFailed,
   * StatefulLoadError
   */
  async open(name: StatefulName, listener: RunListener): Promise<SessionRun> {
    const current = currentVersion(this.#ports.apps, name);
    // The isolate starts meanwhile, where the session is likely to run here.
    if (this.#ports.homes.followable.log(name) !== undefined) current.prepare(name);
    const home = await this.#openHome(name, current.version);
    let run: SessionRun | undefined, standby: Promise<Standby | null> | undefined;
    try {
      // session_host.ts S2
      const isAdopted = home.log.length === 0 && home.version !== current.version;
      const code = isAdopted ? current : await writtenBy(this.#ports.apps, name, versionOfLog(home));
      const base = home.checkpoint && openPiece(home.checkpoint.bytes);
      const head = joinPieces(base, home.log);
      const birth = home.seed.subarray(0, BIRTH_BYTES).toHex();
      const stores = this.#storesOf(code);
      const missed = ({ message }: Error) =>
        this.#log(name, "warn", `${shownSession(name)} goes on, its clients hold its log: ${message}`);
      const services = isShared(code, name) ? { ...stores, missed } : stores;
      standby = this.#ports.standby(name, code.version, lastOf(home));
      const [from, store] = await Promise.all([
        standby.then(async (standby) => standby ?? await this.#sessionOf(name, home)),
        OwnStore.open(services, { ...name, birth }, head, (site) => home.fence(site)),
      ]);
      // Effects that were applied at a site without which the session goes on are applied again.
      const applied = head.seen?.isWhole === true && !store.isMissing ? head.seen.applied : 0;
      const { seed } = home;
      const outside = code.outsideOf(name);
      const { replica } = this.#ports.replica.status();
      const log = home.log.map(({ bytes }) => openPiece(bytes));
      // The bytes of a base are no log: only its head is to be read here.
      const pieces = base === null ? log : [{ ...base, bytes: new Uint8Array() }, ...log];
      const { nowMs, sends } = this.#ports;
      const calls = new SessionCalls(this.#ports, { name, seed, store, outside });
      const versions = new RunVersions(
        { replica, nowMs, tick: () => store.tick(), lead: this.#lead },
        pieces,
      );
      run = new SessionRun({
        ...{ home, version: code.version, store, listener, isAdopted, applied, versions },
        open: head.open,
        isShared: isShared(code, name),
        nowMs: this.#ports.nowMs,
        clock: this.#ports.clock,
        originWay: code.originWay(name),
        calls,
        queues: {
          store: ({ effect, place, atMs, send: { queue, ...message } }) =>
            sends.storeOfSession(name.app, { queue, message, key: calls.keyOf(effect), place, sentMs: atMs }),
        },
      });
      const epoch = { epoch: home.epoch, replica };
      const since = { out: {}, effectsApplied: applied };
      await run.start(
        from instanceof Standby
          ? from.promote({ ...epoch, ...since }, run)
          : code.open({ ...from, ...epoch, ...since, code: code.replay }, run),
      );
      return run;
    } catch (error) {
      if (run === undefined) void standby?.then((standby) => standby?.close());
      if (run === undefined) home.abandon();
      else await run.finished;
      if (error instanceof StandbyFailed) return await this.open(name, listener);
      throw error;
    }
  }

  #storesOf(code: SessionCode): OwnStoreServices {
    const known = this.#stores.get(code);
    if (known !== undefined) return known;
    const { app } = code;
    const stores: OwnStoreServices = {
      ...code.stores,
      leftOut: (name, text) => this.#leftOut({ app, ...name }, text),
    };
    this.#stores.set(code, stores);
    return stores;
  }

  /** Reads a session's log for an isolate. @throws Problem where it can't be read */
  #sessionOf(name: StatefulName, home: OpenedSession): ReturnType<typeof sessionOf> {
    return sessionOf(name, home).catch((error) => {
      if (!(error instanceof CodecError)) throw error;
      throw new Problem(
        "stateful_parked",
        `${shownSession(name)} stands still: log_corrupt: ${error.message}`,
      );
    });
  }

  /**
   * Returns what can be kept of a session whose home is open, and serves nobody: by the code that wrote its log.
   * @throws Problem, StatefulLoadError
   */
  async salvage(name: StatefulName, home: OpenedSession): Promise<Salvaged> {
    const { apps, replica } = this.#ports;
    const code = await writtenBy(apps, name, versionOfLog(home));
    const from = await this.#sessionOf(name, home);
    const { seen } = joinPieces(home.checkpoint && openPiece(home.checkpoint.bytes), home.log);
    const effectsApplied = seen?.isWhole === true ? seen.applied : 0;
    const as = { epoch: home.epoch, replica: replica.status().replica, code: code.replay };
    return await salvage((sink) =>
      code.open({ ...from, ...as, out: {}, effectsApplied, salvages: true }, sink)
    );
  }

  /** Logs a write that was left out: nothing is left out in silence. */
  #leftOut(name: StatefulName, text: string): void {
    this.#log(name, "error", `${shownSession(name)}: ${text}`);
  }

  /** Opens a home. @throws HomeError as `Homes.open` */
  async #openHome(name: StatefulName, version: string): Promise<OpenedSession> {
    const key = mapKey(name);
    try {
      const asked = this.#asked.get(key);
      this.#asked.delete(key);
      const home = await this.#ports.homes.open(name, version, asked === "forced", asked !== undefined);
      this.#unopened.delete(key);
      return home;
    } catch (error) {
      if (error instanceof HomeError && error.code === "stateful_unreachable") {
        this.#failed(key, error.message);
      }
      throw error;
    }
  }

  /** Returns why a session could not be opened here; null: it could, or nobody has tried. */
  why(name: StatefulName): string | null {
    return this.#unopened.get(mapKey(name)) ?? null;
  }

  /** Has `ensure` open the session without waiting for clients. */
  forced<T>(name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    return this.#as("forced", name, ensure);
  }

  /**
   * Has `ensure` open the session at this site, whichever site would be its place (functions/sessions/home/seats.ts).
   */
  here<T>(name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    return this.#as("here", name, ensure);
  }

  async #as<T>(how: "forced" | "here", name: StatefulName, ensure: () => Promise<T>): Promise<T> {
    const key = mapKey(name);
    this.#asked.set(key, how);
    try {
      return await ensure().catch((error) => {
        if (!this.#asked.has(key)) throw error;
        return ensure(); // that opening had begun before, and was not as asked
      });
    } finally {
      this.#asked.delete(key);
    }
  }

  #failed(key: string, why: string): void {
    this.#unopened.delete(key);
    this.#unopened.set(key, why);
    const [oldest] = this.#unopened.keys();
    if (this.#unopened.size > UNOPENED_MAX && oldest !== undefined) this.#unopened.delete(oldest);
  }
}

const lastOf = ({ log, checkpoint }: OpenedSession): number => {
  const piece = log.at(-1);
  return piece === undefined ? checkpoint?.at ?? 0 : piece.first + piece.count - 1;
};
