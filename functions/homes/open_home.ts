/**
 * A stateful session that is open here: what the runtime holds of it (api.ts), over its log (live_home.ts) and its
 * answers (answers.ts).
 *
 * Life: opened → replayed → `start` → serving → rest, or over.
 */
import {
  type Answer,
  type Asked,
  type Checkpoint,
  type Commit,
  type Home,
  HomeError,
  type HomeHosts,
  type Opened,
  type Piece,
  type StatefulName,
} from "./api.ts";
import type { SiteId } from "../../store/ports.ts";
import type { Base, KeeperAsk, LogCopy, Reply } from "./asks.ts";
import type { AnswerRoom } from "./answer_room.ts";
import { Answers } from "./answers.ts";
import {
  CHECKPOINT_BYTES_MAX,
  LOG_BYTES_MAX,
  PART_BYTES_MAX,
  PIECE_BYTES_MAX,
  STATE_BYTES_MAX,
  STATE_PARTS_MAX,
  VERSION_BYTES_MAX,
} from "./limits.ts";
import type { LiveHome } from "./live_home.ts";
import { type MoveArbiter, prepareMove, yieldTo } from "./move.ts";
import { isText, shown } from "./name.ts";
import { batchFrom, bytesOf, markAfter, NO_STATE, type StateMark } from "./state_parts.ts";

/** What it needs of its site. */
export interface OpenHomePorts {
  readonly disk: number;
  /** Of a state, what goes to the disk at once. */
  readonly batchBytes: number;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  /** This site's own keeper. */
  own(ask: KeeperAsk): Promise<Reply>;
  /** Bytes of this site's own log of it. */
  logBytes(): number;
  epochAt(entry: number): number;
  /** That log's base. */
  base(): { readonly at: number; readonly state: StateMark };
  /** Tells a site that it may take it over. */
  invite(site: SiteId, name: StatefulName): void;
  readonly moveArbiter: MoveArbiter;
  /** Out of memory; still at home. */
  rested(home: OpenHome): void;
}

/** What the runtime gets of an opening. */
export class Opening implements Opened {
  readonly checkpoint: Checkpoint | null;
  readonly log: readonly Piece[];
  readonly seed: Uint8Array;
  readonly version: string;
  readonly #make: (answers: Answers) => OpenHome;
  readonly #live: LiveHome;
  readonly #answers: Answers;
  readonly #abandoned: () => void;
  #isUsed = false;

  constructor(
    live: LiveHome,
    { seed, version, base, parts, pieces }: LogCopy,
    { nowMs, room, make, abandoned }: {
      readonly nowMs: () => number;
      readonly room: AnswerRoom;
      readonly make: (answers: Answers) => OpenHome;
      readonly abandoned: () => void;
    },
  ) {
    this.#live = live;
    this.#make = make;
    this.#abandoned = abandoned;
    this.#answers = new Answers(nowMs, room);
    if (base !== null) this.#answers.restore(base.answers, base.at);
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

  start(answers: readonly Answer[]): Home {
    if (this.#isUsed) throw new Error("an opening starts once");
    this.#isUsed = true;
    // Some of the log may not be held yet: what follows from it leaves when it is.
    this.#answers.answered(answers, this.#live.last);
    return this.#make(this.#answers);
  }

  abandon(): void {
    if (this.#isUsed) return;
    this.#isUsed = true;
    this.#answers.leave();
    this.#abandoned();
  }
}

/** See the file's header. */
export class OpenHome implements Home {
  readonly #ports: OpenHomePorts;
  readonly #live: LiveHome;
  readonly #answers: Answers;
  #wakeAtMs: number;
  #isResting = false;
  #checkpoints: Promise<void> = Promise.resolve();

  constructor(ports: OpenHomePorts, live: LiveHome, answers: Answers, wakeAtMs: number) {
    this.#ports = ports;
    this.#live = live;
    this.#answers = answers;
    this.#wakeAtMs = wakeAtMs;
    live.onHeld = (through) => answers.held(through);
    answers.held(live.held);
    live.onOver = (error) => answers.end(error);
    if (live.isOver) answers.leave();
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
    return this.#ports.logBytes();
  }

  get heirs(): readonly SiteId[] {
    return this.#live.owners.map(({ site }) => site).filter((site) => this.#live.unfit(site) === null);
  }

  get over(): Promise<HomeError> {
    return this.#live.over;
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

  commit({ count, entries, answers, wakeAtMs }: Commit): Promise<void> {
    if (this.#isResting) throw new Error("a commit of a stateful session that rests");
    const logBytes = this.logBytes + entries.length;
    if (count < 1 || entries.length > PIECE_BYTES_MAX || logBytes > LOG_BYTES_MAX) {
      return Promise.reject(
        new HomeError(
          "limit_stateful",
          `cannot append a commit of ${count} entries and ${entries.length} bytes to the log of ${
            shown(this.name)
          }: ` +
            `a commit has at least one entry and up to ${PIECE_BYTES_MAX} bytes, a log up to ${LOG_BYTES_MAX} bytes ` +
            `between two checkpoints, and this one would have ${logBytes}`,
        ),
      );
    }
    this.#wakeAtMs = Math.max(0, Math.ceil(wakeAtMs ?? 0));
    const held = this.#live.append({ count, bytes: entries, wakeAtMs: this.#wakeAtMs });
    if (!this.#live.isOver) this.#answers.answered(answers, this.#live.last);
    return held;
  }

  checkpoint(checkpoint: Checkpoint): Promise<void> {
    const done = this.#checkpoints.then(() => this.#checkpoint(checkpoint));
    this.#checkpoints = done.catch(() => {});
    return done;
  }

  async #checkpoint({ at, bytes, version, parts = [], on = null }: Checkpoint): Promise<void> {
    const { name, epoch } = this, { disk, batchBytes } = this.#ports;
    const before = this.#ports.base();
    const kept = on === null ? NO_STATE : before.state;
    const state = markAfter(kept, parts);
    const why = this.#refusal({ at, bytes, version, parts }, state) ??
      (on === null || on === before.at ? null : `it goes on from ${on}, and the last one is at ${before.at}`);
    if (why !== null) throw refused(name, at, why);
    // What was not released is no base: another home may not have it (H4).
    await this.#live.whenHeld(at);
    const base: Base = {
      at,
      epoch: this.#ports.epochAt(at),
      wakeAtMs: this.#wakeAtMs,
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

  #refusal({ at, bytes, version, parts = [] }: Checkpoint, { count }: StateMark): string | null {
    const length = bytesOf(parts);
    if (bytes.length > CHECKPOINT_BYTES_MAX) {
      return `it has ${bytes.length} bytes, and may have up to ${CHECKPOINT_BYTES_MAX}`;
    }
    if (count > STATE_PARTS_MAX || length > STATE_BYTES_MAX) {
      return `its state has ${count} parts, these of ${length} bytes; it may have up to ${STATE_PARTS_MAX} and ` +
        `${STATE_BYTES_MAX}`;
    }
    const large = parts.find((part) => part.length > PART_BYTES_MAX);
    if (large !== undefined) {
      return `a part of a state has ${large.length} bytes, and may have ${PART_BYTES_MAX}`;
    }
    if (!isText(version, VERSION_BYTES_MAX)) return `a version has 1 to ${VERSION_BYTES_MAX} bytes`;
    return at > this.#live.last ? `the last entry is ${this.#live.last}` : null;
  }

  /** Whether this site's disk has taken a part of a checkpoint. @throws HomeError where it will not. */
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

  async rest(): Promise<void> {
    await this.#checkpoints;
    await this.#live.whenHeld(this.#live.last);
    this.#isResting = true;
    this.#live.rests();
    this.#answers.leave();
    this.#ports.rested(this);
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
    if (live.isOver) throw await live.over;
    if (outcome === "granted") {
      live.supersede(`${site} takes it over`, site); // M2
      return this.#ports.invite(site, name);
    }
    live.dismissed(site);
    if (outcome === "refused") {
      live.supersede("the arbiter has given it to another");
      throw await live.over;
    }
    // It may be on record by now: then it is not to stay so (M4).
    void yieldTo(arbiter, { name, epoch, to: "" });
    throw new HomeError(
      "move_refused",
      `cannot move ${shown(name)} to ${site}: the site that knows where it is at home does not answer`,
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
    this.#live.end(new HomeError("ended", `${shown(name)} has ended`));
  }
}

const refused = (name: StatefulName, at: number, why: string): HomeError =>
  new HomeError("limit_stateful", `cannot take a checkpoint of ${shown(name)} after entry ${at}: ${why}`);
