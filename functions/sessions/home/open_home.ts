/**
 * Stateful session that is open here: what the runtime holds of it (api.ts), over its log (live_home.ts) and its
 * answers (answers.ts).
 *
 * Life: opened → replayed → `start` → serving → rest, or over.
 *
 * OH1  Once it is to rest it appends nothing, and takes no checkpoint: the next opening goes on from what the disk has,
 *      and must not run beside one that believes to know better.
 */
import {
  type Asked,
  type Home,
  HomeError,
  type HomeHosts,
  type IsolateCommit,
  type LoggedAnswer,
  type LoggedCheckpoint,
  type OpenedSession,
  type Piece,
  type StatefulName,
} from "../log/api.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { Base, KeeperAsk, LogCopy, Reply } from "../log/asks.ts";
import type { AnswerRoom } from "./answer_room.ts";
import { Answers } from "./answers.ts";
import {
  CHECKPOINT_BYTES_MAX,
  LOG_BYTES_MAX,
  PIECE_BYTES_MAX,
  STATE_BYTES_MAX,
  STATE_PART_BYTES_MAX,
  STATE_PARTS_MAX,
  VERSION_BYTES_MAX,
} from "../log/limits.ts";
import type { KeptLog } from "../log/kept_log.ts";
import type { HomeListener, LiveHome } from "./live_home.ts";
import { type MoveArbiter, prepareMove, yieldTo } from "./move.ts";
import { isText, shownName } from "../log/name.ts";
import { batchFrom, lengthOfParts, markAfter, NO_STATE, type StateMark } from "../log/state_parts.ts";

/** Site, as open homes need it: one object for all, for there may be many. */
export interface OpenHomePorts {
  disk(): number;
  /** Bytes of a state that go to the disk at once. */
  readonly batchBytes: number;
  readonly nowMs: () => number;
  readonly room: AnswerRoom;
  /** Asks this site's own keeper. */
  own(ask: KeeperAsk): Promise<Reply>;
  /** Returns this site's own log of a session. */
  log(name: StatefulName): KeptLog | undefined;
  /** Tells a site that it may take a session over. */
  invite(site: SiteId, name: StatefulName): void;
  readonly moveArbiter: MoveArbiter;
  /** Notes that a session is out of memory; it is still at home. */
  rested(live: LiveHome): void;
}

/** Opening, as the runtime gets it. What is read here, and may be large, is let go of when it has started. */
export class Opening implements OpenedSession {
  checkpoint: LoggedCheckpoint | null;
  log: readonly Piece[];
  readonly seed: Uint8Array;
  readonly version: string;
  readonly #ports: OpenHomePorts;
  readonly #live: LiveHome;
  #answers: Answers | null;

  constructor(
    ports: OpenHomePorts,
    live: LiveHome,
    { seed, version, base, parts, pieces }: LogCopy,
  ) {
    this.#ports = ports;
    this.#live = live;
    live.goesOnFrom(base?.at ?? 0);
    const answers = this.#answers = new Answers(ports.nowMs, ports.room);
    if (base !== null) answers.restore(base.answers, base.at);
    this.seed = seed;
    this.version = base?.version ?? version;
    this.checkpoint = base === null ? null : { at: base.at, bytes: base.bytes, version: base.version, parts };
    this.log = pieces.map(({ first, count, bytes }) => ({ first, count, bytes }));
  }

  get name(): StatefulName {
    return this.#live.name;
  }

  get epoch(): number {
    return this.#live.epoch;
  }

  start(answered: readonly LoggedAnswer[]): Home {
    const live = this.#live, answers = this.#use();
    if (answers === null) throw new Error("an opening starts once");
    // Some of the log may not be held yet: what follows from it leaves when it is.
    answers.answered(answered, live.last);
    return new OpenHome(this.#ports, live, answers);
  }

  fence(site: SiteId): Promise<void> {
    return this.#live.fence(site);
  }

  abandon(): void {
    const answers = this.#use();
    if (answers === null) return;
    answers.leave();
    this.#ports.rested(this.#live);
  }

  #use(): Answers | null {
    const answers = this.#answers;
    this.#answers = this.checkpoint = null;
    this.log = [];
    return answers;
  }
}

/** Open home (see the file's header). */
export class OpenHome implements Home, HomeListener {
  readonly #ports: OpenHomePorts;
  readonly #live: LiveHome;
  readonly #answers: Answers;
  #isResting = false;
  /** Promise of the last checkpoint under way. */
  #checkpoints: Promise<void> | null = null;
  readonly over: Promise<HomeError>;
  #resolveOver: (error: HomeError) => void;

  constructor(ports: OpenHomePorts, live: LiveHome, answers: Answers) {
    this.#ports = ports;
    this.#live = live;
    this.#answers = answers;
    ({ promise: this.over, resolve: this.#resolveOver } = Promise.withResolvers<HomeError>());
    live.listener = this;
    answers.held(live.held);
    if (live.overBy === null) return;
    answers.leave();
    this.#resolveOver(live.overBy);
  }

  onHeld(through: number): void {
    this.#answers.held(through);
  }

  onOver(error: HomeError): void {
    this.#answers.end(error);
    this.#resolveOver(error);
  }

  get name(): StatefulName {
    return this.#live.name;
  }

  get epoch(): number {
    return this.#live.epoch;
  }

  get sequence(): number {
    return this.#live.last;
  }

  get isStalled(): boolean {
    return this.#live.isStalled;
  }

  get released(): number {
    return this.#live.held;
  }

  get hosts(): HomeHosts {
    return this.#live.hosts;
  }

  copy(): Promise<LogCopy> {
    return this.#live.copy();
  }

  get logBytes(): number {
    return this.#ports.log(this.name)?.pieceBytes ?? 0;
  }

  get copyBytes(): number {
    return this.#ports.log(this.name)?.bytes ?? 0;
  }

  get heirs(): readonly SiteId[] {
    return this.#live.owners.map(({ site }) => site).filter((site) => this.#live.unfit(site) === null);
  }

  ask(request: string, isBegun?: boolean): Asked {
    return this.#answers.ask(request, isBegun);
  }

  dropped(request: string): void {
    this.#answers.dropped(request);
  }

  received(request: string): void {
    this.#answers.received(request);
  }

  commit({ count, entries, answers, wakeAtMs }: IsolateCommit): Promise<void> {
    this.#awake("commit");
    const logBytes = this.logBytes + entries.length;
    if (count < 1 || entries.length > PIECE_BYTES_MAX || logBytes > LOG_BYTES_MAX) {
      return Promise.reject(
        new HomeError(
          "limit_stateful",
          `cannot append a commit of ${count} entries and ${entries.length} bytes to the log of ${
            shownName(this.name)
          }: ` +
            `a commit has at least one entry and up to ${PIECE_BYTES_MAX} bytes, a log up to ${LOG_BYTES_MAX} bytes ` +
            `between two checkpoints, and this one would have ${logBytes}`,
        ),
      );
    }
    const wakeMs = Math.max(0, Math.ceil(wakeAtMs ?? 0));
    const held = this.#live.append({ count, bytes: entries, wakeAtMs: wakeMs });
    if (!this.#live.isOver) this.#answers.answered(answers, this.#live.last);
    return held;
  }

  checkpoint(checkpoint: LoggedCheckpoint): Promise<void> {
    this.#awake("checkpoint");
    const done = (this.#checkpoints ?? Promise.resolve()).then(() => this.#checkpoint(checkpoint));
    const over = this.#checkpoints = done.catch(() => {}).then(() => {
      if (this.#checkpoints === over) this.#checkpoints = null;
    });
    return done;
  }

  async #checkpoint({ at, bytes, version, parts = [], on = null }: LoggedCheckpoint): Promise<void> {
    const { name, epoch } = this, { batchBytes } = this.#ports, disk = this.#ports.disk();
    const before = this.#ports.log(name);
    const beforeAt = before?.base?.at ?? 0;
    const kept = on === null ? NO_STATE : before?.state.base.state ?? NO_STATE;
    const state = markAfter(kept, parts);
    const why = this.#refusal({ at, bytes, version, parts }, state) ??
      (on === null || on === beforeAt ? null : `it goes on from ${on}, and the last one is at ${beforeAt}`);
    if (why !== null) throw refused(name, at, why);
    // A state that was not released is no base: another home may not have it (H4).
    await this.#live.whenHeld(at);
    // Both as of that entry: what was committed meanwhile may be nowhere else, and lost with this home.
    const log = this.#ports.log(name);
    const base: Base = {
      at,
      epoch: log?.epochAt(at) ?? 0,
      wakeAtMs: log?.wakeAtMsAt(at) ?? 0,
      version,
      bytes,
      answers: this.#answers.checkpoint(at),
      state,
    };
    const of = { name, disk, epoch };
    let next = 0;
    for (;;) {
      const end = batchFrom(parts, next, batchBytes);
      if (end >= parts.length) break;
      const ask = {
        kind: "upload",
        ...of,
        at,
        first: kept.count + next,
        parts: parts.slice(next, end),
      } as const;
      if (!this.#isHeld(at, await this.#ports.own(ask))) return;
      next = end;
    }
    const ask = { kind: "checkpoint", ...of, base, kept, parts: parts.slice(next) } as const;
    if (this.#isHeld(at, await this.#ports.own(ask))) await this.#live.rebased(at);
  }

  #refusal({ at, bytes, version, parts = [] }: LoggedCheckpoint, { count }: StateMark): string | null {
    const length = lengthOfParts(parts);
    if (bytes.length > CHECKPOINT_BYTES_MAX) {
      return `it has ${bytes.length} bytes, and may have up to ${CHECKPOINT_BYTES_MAX}`;
    }
    if (count > STATE_PARTS_MAX || length > STATE_BYTES_MAX) {
      return `its state has ${count} parts, these of ${length} bytes; it may have up to ${STATE_PARTS_MAX} and ` +
        `${STATE_BYTES_MAX}`;
    }
    const large = parts.find((part) => part.length > STATE_PART_BYTES_MAX);
    if (large !== undefined) {
      return `a part of a state has ${large.length} bytes, and may have ${STATE_PART_BYTES_MAX}`;
    }
    if (!isText(version, VERSION_BYTES_MAX)) return `a version has 1 to ${VERSION_BYTES_MAX} bytes`;
    return at > this.#live.last ? `the last entry is ${this.#live.last}` : null;
  }

  /** Reports whether this site's disk has taken a part of a checkpoint. @throws HomeError where it will not. */
  #isHeld(at: number, reply: Reply): boolean {
    if (reply.kind === "held") return true;
    if (reply.kind !== "refused" || reply.why !== "superseded") {
      throw refused(this.name, at, "no commit ends there, or there is no room");
    }
    this.#live.supersede(`epoch ${reply.epoch} was promised`);
    return false;
  }

  settled(): Promise<void> {
    return this.#live.whenHeld(this.#live.last);
  }

  /** Checks that the home does not rest (OH1). */
  #awake(what: string): void {
    if (this.#isResting) throw new Error(`a ${what} of ${shownName(this.name)}, which rests`);
  }

  async rest(): Promise<void> {
    this.#isResting = true;
    await this.#checkpoints;
    await this.#live.whenHeld(this.#live.last);
    this.#live.rests();
    this.#answers.leave();
    this.#ports.rested(this.#live);
  }

  prepareMove(site: SiteId): Promise<void> {
    return prepareMove(this.#live, site);
  }

  stay(site: SiteId): void {
    this.#live.dismissed(site);
  }

  async moveTo(site: SiteId): Promise<void> {
    const live = this.#live, { name, epoch } = this;
    await prepareMove(live, site);
    await live.whenHeld(live.last);
    const arbiter = this.#ports.moveArbiter;
    const outcome = await yieldTo(arbiter, { name, epoch, to: site });
    if (live.overBy !== null) throw live.overBy;
    if (outcome === "granted") {
      live.supersede(`${site} takes it over`, site); // move.ts M2
      return this.#ports.invite(site, name);
    }
    live.dismissed(site);
    if (outcome === "refused") {
      live.supersede("the arbiter has given it to another");
      throw live.overBy;
    }
    // The move may be on record by now: then it is not to stay so (M4).
    void yieldTo(arbiter, { name, epoch, to: "" });
    throw new HomeError(
      "move_refused",
      `cannot move ${shownName(name)} to ${site}: the site that knows where it is at home does not answer`,
    );
  }

  async end(): Promise<void> {
    await this.#live.whenHeld(this.#live.last);
    const { name, epoch } = this;
    const reply = await this.#live.askArbiter({ kind: "end", name, epoch });
    if (reply === null) throw await this.over;
    if (reply.kind === "row" && reply.outcome !== "granted") {
      this.#live.supersede("the arbiter has given it to another", reply.row?.site ?? null);
      throw await this.over;
    }
    await this.#live.forgetAll();
    this.#live.end(new HomeError("ended", `${shownName(name)} has ended`));
  }
}

const refused = (name: StatefulName, at: number, why: string): HomeError =>
  new HomeError("limit_stateful", `cannot take a checkpoint of ${shownName(name)} after entry ${at}: ${why}`);
