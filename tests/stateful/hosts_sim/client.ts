/** A client with the host side of the client library; most hold the log. */
import {
  type Channel,
  decodeToHost,
  encodeToHome,
  type HeldLog,
  type HostEnd,
  HostSide,
  type HostState,
} from "../../../functions/sessions/attach/mod.ts";
import { HostLog, openHostLog } from "../../../functions/sessions/sealed/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";
import type { Line } from "./channel.ts";
import type { Held } from "./ledger.ts";
import { decodeEntries, decodeState, digestAfter } from "./program.ts";
import { NAME } from "./session_at.ts";
import { openPiece } from "../../../functions/sessions/serve/pieces.ts";

/** What a client that lies gives back for its log. */
export type Lie =
  | "none"
  | "nothing"
  | "an older one"
  | "a changed one"
  | "another's"
  | "one without its middle";

export interface ClientWrongs {
  /** It answers first, and promises a while later. */
  readonly promisesLater?: boolean;
  /** It promises nothing. */
  readonly promisesNothing?: boolean;
  /** Of what it holds it gives back all but the last record. */
  readonly givesLess?: boolean;
  /** It drops what it holds when another home begins. */
  readonly cutsEarly?: boolean;
  /** It gives out what comes with a record before it holds that. */
  readonly holdsLater?: boolean;
}

export interface ClientPorts {
  readonly world: World;
  readonly draws: Draws;
  readonly secret: Uint8Array;
  readonly holdsLog: boolean;
  /** Of each message. */
  readonly bytes: number;
  /** A channel to some site, or to this one; null: it is down. */
  connect(client: Client, site: string | null): Line | null;
  given(peer: string, sequence: number, text: string, held: Held): void;
  acknowledged(peer: string, count: number, held: Held): void;
  /** A message was given up: an isolate was lost in its handler. */
  rejected(peer: string, sequence: number): void;
  ended(client: Client, end: HostEnd): void;
  probe(what: string): void;
  /** Its log as it is to be given back. */
  told(records: readonly Uint8Array[]): readonly Uint8Array[];
  readonly wrongs: ClientWrongs;
}

const RETRY_MS = 60, RETRY_MS_MAX = 400;
const SILENT_MS = 1_500;

export class Client {
  readonly id: string;
  readonly #ports: ClientPorts;
  #log: HostLog;
  #side: HostSide;
  #line: Line | null = null;
  /** How many programs have begun with what it has stored. */
  #program = 1;
  #retryMs = RETRY_MS;
  #isLooking = false;
  /** It is away: it looks for no site. */
  isAway = false;
  /** It has closed. */
  isLeaving = false;
  /** Its peer is over for good. */
  isOver = false;

  constructor(id: string, ports: ClientPorts) {
    this.id = id;
    this.#ports = ports;
    this.#log = new HostLog();
    this.#side = this.#begin(undefined);
  }

  get holdsLog(): boolean {
    return this.#ports.holdsLog;
  }

  get peer(): string | null {
    return this.#side.identity?.id ?? null;
  }

  get isDone(): boolean {
    return this.isOver || (this.#side.stage === "open" && this.#side.acknowledged === this.#side.sent);
  }

  get received(): number {
    return this.#side.received;
  }

  get sent(): number {
    return this.#side.sent;
  }

  get acknowledged(): number {
    return this.#side.acknowledged;
  }

  send(): void {
    this.#side.send(`${this.#side.sent + 1} ${"x".repeat(this.#ports.bytes)}`);
  }

  #begin(saved: HostState | undefined): HostSide {
    const { world, draws, holdsLog, probe } = this.#ports;
    const side: HostSide = new HostSide({
      ...{ kind: "client", instance: draws.integer(1, 2 ** 40), silentMs: SILENT_MS, saved },
      program: this.#program,
      clock: { nowMs: () => world.nowMs, after: (ms, run) => world.after(ms, run) },
      ...(holdsLog ? { log: this.#held() } : {}),
      listener: {
        opened: () => this.#retryMs = RETRY_MS,
        message: (message, sequence) => {
          if (this.#side === side) {
            this.#ports.given(this.peer ?? "", sequence, String(message), () => this.#holds());
          }
        },
        acknowledged: (count) => {
          if (this.#side === side) this.#ports.acknowledged(this.peer ?? "", count, () => this.#holds());
        },
        rejected: (sequence) => this.#ports.rejected(this.peer ?? "", sequence),
        lost: (why) => {
          if (this.#side !== side) return;
          probe(`lost: ${why.kind}${why.kind === "malformed" ? ` ${why.message}` : ""}`);
          this.#line = null;
          this.#look(why.kind === "moved" ? why.site : null);
        },
        closed: (end) => {
          if (this.#side !== side) return;
          this.#line = null;
          this.isOver = true;
          this.#ports.ended(this, end);
        },
      },
    });
    return side;
  }

  connect(site: string | null = null): void {
    if (this.isOver || this.isAway) return;
    const line = this.#ports.connect(this, site);
    if (line === null) return this.#look(null);
    this.#line = line;
    const end = line.end(line.up), reader = this.#side.connected(end);
    line.down.read({
      frame: (bytes) => this.#answers(end, bytes) ? undefined : reader.frame(bytes),
      broken: () => reader.broken(),
    });
  }

  /** Where it is broken a fence is answered beside what keeps the promise. */
  #answers(end: Channel, bytes: Uint8Array): boolean {
    const { promisesLater = false, promisesNothing = false } = this.#ports.wrongs;
    const frame = promisesLater || promisesNothing ? decodeToHost(bytes) : null;
    if (frame?.kind !== "fence") return false;
    const { epoch } = frame;
    end.send(encodeToHome({ kind: "log", epoch, records: this.records }));
    if (promisesLater) this.#ports.world.after(800, () => void this.#log.promise(epoch));
    return true;
  }

  #look(site: string | null): void {
    if (this.#isLooking || this.isOver) return;
    this.#isLooking = true;
    const { world, draws } = this.#ports;
    const ms = site === null ? this.#retryMs : RETRY_MS / 6;
    this.#retryMs = Math.min(RETRY_MS_MAX, this.#retryMs * 1.5);
    world.after(draws.between(0, ms), () => {
      this.#isLooking = false;
      if (this.#side.stage === "apart") this.connect(site);
    });
  }

  drop(): void {
    this.#line?.break();
  }

  /** Another site may do better: the old channel is left as it is. */
  roam(): void {
    if (this.#side.stage === "open") this.connect();
  }

  leave(): void {
    this.isLeaving = true;
    this.#side.close();
  }

  away(ms: number): void {
    this.isAway = true;
    this.drop();
    this.#ports.world.after(ms, () => {
      this.isAway = false;
      if (this.#side.stage === "apart") this.connect();
    });
  }

  /** Its program ends, and goes on from what it has stored; the log is among it, or not. */
  restart(keepsLog: boolean): void {
    const saved = this.#side.save();
    if (saved === null || this.isOver || this.isLeaving) return;
    this.#side.abandon();
    this.#line?.break();
    this.#line = null;
    if (!keepsLog) this.#log = new HostLog();
    this.#program++;
    this.#side = this.#begin(saved);
    this.#look(null);
  }

  /** What it has stored as it is now: the function that it returns has its program begin again with that. */
  stored(): () => void {
    const saved = this.#side.save(), { promised } = this.#log, { records } = this, program = this.#program;
    return () => {
      if (saved === null || this.isOver || this.isLeaving) return;
      this.#side.abandon();
      this.#line?.break();
      this.#line = null;
      this.#log = HostLog.restore(promised, records);
      this.#program = program + 1;
      this.#side = this.#begin(saved);
      this.#look(null);
    };
  }

  // ── The log ──

  /** What it holds, as it is. */
  get records(): readonly Uint8Array[] {
    return this.#log.promise(this.#log.promised) ?? [];
  }

  #held(): HeldLog {
    const { wrongs, world, told } = this.#ports;
    const promised = () => this.#log.promised;
    return {
      get promised() {
        return promised();
      },
      summary: () => this.#log.summary(),
      promise: (epoch) => {
        const records = this.#log.promise(epoch);
        return records && told(wrongs.givesLess === true ? records.slice(0, -1) : records);
      },
      take: (epoch, record) => {
        const log = this.#log;
        if (wrongs.cutsEarly === true && record[0] === 1) this.#log = new HostLog();
        if (wrongs.cutsEarly === true && record[0] !== 0 && this.#log.length === 0) return "held";
        if (wrongs.holdsLater === true) {
          world.after(20, () => void log.take(epoch, record));
          return "held";
        }
        return this.#log.take(epoch, record);
      },
      drop: () => this.#log.drop(),
    };
  }

  /** Digests of the entries that it holds. */
  #holds(): ReadonlySet<string> {
    const digests = new Set<string>();
    const { records } = this, { secret } = this.#ports;
    const opened = records.length === 0
      ? null
      : openHostLog([secret], { name: NAME, receiver: this.peer ?? "" }, records);
    if (opened === null || !opened.ok) return digests;
    const { base, pieces } = opened.copy.log;
    let digest = base === null ? "0" : decodeState(openPiece(base.bytes).bytes).digest;
    digests.add(digest);
    for (const piece of pieces) {
      for (const entry of decodeEntries(openPiece(piece.bytes).bytes)) {
        digest = digestAfter(digest, entry);
        digests.add(digest);
      }
    }
    return digests;
  }
}
