/**
 * What runs the stateful sessions of one process: the little of the runtime that homes are used by.
 */
import {
  type Home,
  HomeError,
  type Homes,
  type LoggedCheckpoint,
  type OpenedSession,
  type StatefulName,
} from "../../../functions/sessions/home/mod.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { Draws } from "../../sim/random.ts";
import type { ProcessClock } from "../../sim/world.ts";
import { BLANK, decode, encode, keyOf, type Output, type State, step } from "./program.ts";

/** Something that came out of a stateful session, and reached somebody. */
export interface Heard {
  readonly name: StatefulName;
  readonly how: "answer" | "message" | "effect";
  readonly output: Output;
  readonly epoch: number;
  readonly site: SiteId;
}

export interface HostPlan {
  /** Commits from one checkpoint to the next. */
  readonly checkpointEvery: number;
  /** Chances, after an answer, that a session rests, or is moved elsewhere. */
  readonly restChance: number;
  readonly moveChance: number;
  /** Named timers, in ms; 0: none. */
  readonly timerMs: number;
}

export interface HostWrongs {
  readonly outputBeforeCommit?: boolean;
  readonly forgetsAnswers?: boolean;
  readonly runsAgain?: boolean;
  readonly staleState?: boolean;
  /** Some requests are said to be past, and are not run. */
  readonly dismisses?: boolean;
  /** What is answered counts as received, whether or not it was. */
  readonly presumes?: boolean;
}

export interface HostPorts {
  readonly homes: Homes;
  readonly site: SiteId;
  readonly clock: ProcessClock;
  readonly draws: Draws;
  readonly plan: HostPlan;
  readonly wrongs: HostWrongs;
  readonly isAlive: () => boolean;
  readonly heard: (heard: Heard) => void;
  /** Whether the client has the answer to a request. */
  readonly hasAnswer: (name: StatefulName, request: string) => boolean;
  readonly complain: (text: string) => void;
  readonly sites: readonly SiteId[];
  readonly call: (to: SiteId, name: StatefulName, request: string) => Promise<Answered>;
}

type Answered = { readonly ok: boolean; readonly value: string };

interface Running {
  readonly home: Home;
  state: State;
  /** The last checkpoint: its entry, and how many inputs its parts have. */
  saved: { readonly at: number; readonly inputs: number } | null;
  checkpoints: number;
  commits: number;
  /** Nothing new is run: it goes to rest, or elsewhere. */
  isMoving: boolean;
  isResting: boolean;
}

const VERSION = "v1";
/** Commits between two checkpoints where there are none. */
const NEVER = 1_000;
/** Clients say of their last requests that they have the answers. */
const RECEIVED_LATELY = 20;
/** So long it is waited for who is to take over. */
const MOVE_MS = 800;
/** Inputs in one part of a state, and how often a checkpoint goes on from none. */
const PART_INPUTS = 2, WHOLE_EVERY = 5;
const no = (value: string): Answered => ({ ok: false, value });

/** What a move ends with that leaves the session where it is: a checkpoint may go on from one that was refused. */
const GOES_ON: ReadonlySet<string> = new Set(["move_refused", "limit_stateful"]);

export class Host {
  readonly #ports: HostPorts;
  readonly #running = new Map<string, Running>();
  readonly #opening = new Map<string, Promise<Running>>();
  readonly probes: Record<string, number> = {};
  /** Nothing rests or moves any more, and no timer is run. */
  isCalm = false;

  constructor(ports: HostPorts) {
    this.#ports = ports;
  }

  get open(): number {
    return this.#running.size;
  }

  /** What is believed here of a session that runs here. */
  state(name: StatefulName): State | null {
    return this.#running.get(keyOf(name))?.state ?? null;
  }

  /** A request of a client at this site. */
  async request(name: StatefulName, request: string): Promise<Answered> {
    const { homes, site, call } = this.#ports;
    const where = homes.where(name);
    if (where !== null && where !== site) {
      const answered = await call(where, name, request);
      if (answered.ok || answered.value === "past") return answered;
      homes.misled(name);
    }
    return await this.#serve(name, request, true);
  }

  /** A request that another site has sent on. */
  here(name: StatefulName, request: string): Promise<Answered> {
    const { homes, site } = this.#ports;
    return homes.where(name) === site ? this.#serve(name, request, false) : Promise.resolve(no("elsewhere"));
  }

  /** A named timer is due. */
  due(name: StatefulName): void {
    if (this.#running.has(keyOf(name))) return;
    this.#probe("due");
    void this.#session(name).then(async (running) => {
      // In the end its turn would come after what is compared then.
      if (!this.isCalm && !running.isMoving) await this.#run(running, `timer ${this.#ports.draws.word()}`);
    }).catch((error) => this.#unexpected(error));
  }

  async create(): Promise<StatefulName | null> {
    try {
      const opened = await this.#ports.homes.create({ app: "a", class: "C" }, VERSION);
      if (!this.#ports.isAlive()) return null;
      this.#begin(opened);
      return opened.name;
    } catch {
      return null;
    }
  }

  async #serve(name: StatefulName, request: string, mayForward: boolean): Promise<Answered> {
    let running: Running;
    try {
      running = await this.#session(name);
    } catch (error) {
      if (!(error instanceof HomeError)) throw error;
      if (error.code !== "elsewhere" || error.site === null || !mayForward) return no(error.code);
      return await this.#ports.call(error.site, name, request);
    }
    try {
      return await this.#ask(running, request);
    } catch (error) {
      if (error instanceof HomeError) return no(error.code);
      throw error;
    }
  }

  async #ask(running: Running, request: string): Promise<Answered> {
    const { wrongs } = this.#ports;
    if (running.isMoving) return no("moving");
    if (wrongs.dismisses === true && request.endsWith(".3")) return no("past");
    const asked = running.home.ask(request);
    if (asked.kind === "past") return no("past");
    if (asked.kind === "known" && wrongs.runsAgain !== true) {
      this.#probe("asked again");
      return {
        ok: true,
        value: JSON.stringify(this.#deliver(running, "answer", decode(await asked.answer))),
      };
    }
    const output = await this.#run(running, request);
    this.#deliver(running, "answer", output);
    this.#afterwards(running);
    return { ok: true, value: JSON.stringify(output) };
  }

  /** One turn: its log entry, its outputs. */
  async #run(running: Running, request: string): Promise<Output> {
    const { draws, wrongs, plan, clock } = this.#ports;
    const { state, output } = step(running.state, { request, drawn: draws.word() });
    running.state = state;
    running.commits++;
    const { drawn } = output;
    const held = running.home.commit({
      count: 1,
      entries: encode({ request, drawn }),
      answers: [{ request, bytes: encode(output) }],
      wakeAtMs: plan.timerMs === 0 ? null : clock.nowMs() + plan.timerMs,
    });
    if (wrongs.outputBeforeCommit === true) this.#out(running, output);
    await held;
    if (wrongs.outputBeforeCommit !== true) this.#out(running, output);
    return output;
  }

  #out(running: Running, output: Output): void {
    this.#deliver(running, "message", output);
    this.#deliver(running, "effect", output);
  }

  #deliver({ home }: Running, how: Heard["how"], output: Output): Output {
    const { isAlive, heard, site } = this.#ports;
    if (isAlive()) heard({ name: home.name, how, output, epoch: home.epoch, site });
    return output;
  }

  /** Checkpoints, rests, moves. */
  #afterwards(running: Running): void {
    const { draws, plan, sites, site, hasAnswer, wrongs } = this.#ports;
    const { home } = running;
    if (draws.chance(0.5)) {
      const lately = running.state.inputs.slice(-RECEIVED_LATELY);
      for (const { request } of lately) {
        if (wrongs.presumes === true || hasAnswer(home.name, request)) home.received(request);
      }
    }
    if (running.isResting) return;
    if (running.commits >= plan.checkpointEvery) {
      running.commits = 0;
      home.checkpoint(this.#saved(running)).then(
        () => this.#probe("checkpoints"),
        (error) => {
          running.saved = null;
          this.#unexpected(error);
        },
      );
    }
    const chance = draws.unit();
    if (running.isMoving || this.isCalm) return;
    if (chance < plan.restChance) this.#rest(running);
    else if (chance < plan.restChance + plan.moveChance) {
      void this.#move(running, draws.pick(sites.filter((one) => one !== site)), draws.unit());
    }
  }

  /** All that are open leave memory, or this site. */
  restAll(): void {
    for (const running of this.#running.values()) {
      if (!running.isMoving && !running.isResting) this.#rest(running);
    }
  }

  #rest(running: Running): void {
    const { homes } = this.#ports, { home } = running;
    const seat = homes.seat(home);
    if (seat === null) return this.#end(running, home.rest(), "rests");
    void this.#move(running, seat, 0.5).then(() => {
      if (running.isMoving || running.isResting) return;
      homes.seatRefused(home, seat);
      this.#rest(running);
    });
  }

  /** As the runtime does: the other site gets the log while it serves; then it is drained, and waits to be taken. */
  async #move(running: Running, to: SiteId, chance: number): Promise<void> {
    const { home } = running;
    const { homes, clock, plan } = this.#ports;
    try {
      if (chance < 0.7) await home.prepareMove(to);
      if (running.isMoving || chance < 0.1) return home.stay(to);
      running.isMoving = true;
      if (chance > 0.3 && plan.checkpointEvery < NEVER) {
        await home.checkpoint(this.#saved(running));
      }
      await home.moveTo(to);
      this.#probe("moves");
    } catch (error) {
      this.#unexpected(error);
      if (error instanceof HomeError && GOES_ON.has(error.code)) {
        this.#probe("moves refused");
        if (!running.isResting) running.isMoving = false;
        return;
      }
      return this.#drop(running);
    }
    this.#drop(running);
    const begun = clock.nowMs();
    const isThere = await homes.whenTaken({ name: home.name, epoch: home.epoch, to }, MOVE_MS);
    this.#probe(isThere ? "moves arrived" : "moves taken back");
    if (isThere && clock.nowMs() - begun < MOVE_MS / 2) this.#probe("moves in time");
  }

  /** A checkpoint: of its inputs, those since the last one, or all of them. */
  #saved(running: Running): LoggedCheckpoint {
    const { home, state, saved } = running;
    const isStale = this.#ports.wrongs.staleState === true && state.inputs.length > 1;
    const inputs = isStale ? state.inputs.slice(0, -1) : state.inputs;
    const isWhole = saved === null || running.checkpoints++ % WHOLE_EVERY === 0;
    const from = isWhole ? 0 : saved.inputs;
    const parts = [];
    for (let at = from; at < inputs.length; at += PART_INPUTS) {
      parts.push(encode(inputs.slice(at, at + PART_INPUTS)));
    }
    this.#probe(isWhole ? "whole" : "increment");
    running.saved = { at: home.sequence, inputs: inputs.length };
    const on = isWhole ? null : saved.at;
    return { at: home.sequence, bytes: encode({ sum: state.sum }), version: VERSION, parts, on };
  }

  #end(running: Running, ending: Promise<void>, what: string): void {
    running.isMoving = running.isResting = true;
    ending.then(() => {
      this.#probe(what);
      this.#drop(running);
    }, (error) => {
      this.#unexpected(error);
      this.#drop(running);
    });
  }

  #unexpected(error: unknown): void {
    if (!(error instanceof HomeError)) this.#ports.complain(`unexpected: ${error}`);
  }

  #drop(running: Running): void {
    const key = keyOf(running.home.name);
    if (this.#running.get(key) === running) this.#running.delete(key);
  }

  #session(name: StatefulName): Promise<Running> {
    const key = keyOf(name);
    const running = this.#running.get(key);
    if (running !== undefined) return Promise.resolve(running);
    const opening = this.#opening.get(key);
    if (opening !== undefined) return opening;
    const made = this.#ports.homes.open(name, VERSION).then((opened) => this.#begin(opened));
    this.#opening.set(key, made);
    const done = () => {
      this.#opening.delete(key);
    };
    made.then(done, done);
    return made;
  }

  /** Replays. */
  #begin(opened: OpenedSession): Running {
    const { complain, wrongs } = this.#ports;
    let state: State = opened.checkpoint === null ? BLANK : {
      ...decode(opened.checkpoint.bytes),
      inputs: (opened.checkpoint.parts ?? []).flatMap((part) => decode(part)),
    };
    const saved = opened.checkpoint && { at: opened.checkpoint.at, inputs: state.inputs.length };
    let next = (opened.checkpoint?.at ?? 0) + 1;
    const answers = [];
    for (const { first, count, bytes } of opened.log) {
      if (first !== next) {
        complain(`the log of ${keyOf(opened.name)} goes on with ${first} instead of ${next}`);
      }
      next = first + count;
      const made = step(state, decode(bytes));
      state = made.state;
      answers.push({ request: made.output.request, bytes: encode(made.output) });
    }
    if (state.inputs.length !== next - 1) {
      complain(`${keyOf(opened.name)} has ${state.inputs.length} inputs after entry ${next - 1}`);
    }
    if (opened.log.length > 0) this.#probe("replayed");
    if (opened.checkpoint !== null) this.#probe("loaded");
    const home = opened.start(wrongs.forgetsAnswers === true ? [] : answers);
    const commits = opened.log.length;
    const running = { home, state, saved, checkpoints: 1, commits, isMoving: false, isResting: false };
    this.#running.set(keyOf(opened.name), running);
    void home.over.then(() => this.#drop(running));
    return running;
  }

  #probe(name: string): void {
    this.probes[name] = (this.probes[name] ?? 0) + 1;
  }
}
