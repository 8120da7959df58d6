/**
 * The isolates of one process of a site: turn loops, one for sessions at home and one for those that are followed, and
 * the pipe between them and the site, which takes a while in each direction. They are lost with the process, or alone.
 *
 * What is given to an isolate and what it commits is told to a tap: that is the log as it was replayed.
 */
import { SESSION_SLOT, type SessionSlot } from "../../functions/class/session_slot.ts";
import type { Commit, OpenSession, SessionSink } from "../../functions/sessions/turn/mod.ts";
import { ProgramStore } from "../../functions/sessions/turn/session_store.ts";
import { type LoopHost, TurnLoop } from "../../functions/sessions/turn/turn_loop.ts";
import type { ClockShare } from "../../store/model/clock_share.ts";
import type { ChannelSink, FollowedChannel } from "../../functions/sessions/serve/ports.ts";
import type { Draws } from "../sim/random.ts";
import { CLASSES, type ClassName, stage } from "./program.ts";

const { core } = (Deno as unknown as Record<symbol, { readonly core: { runMicrotasks(): void } }>)[
  (Deno as unknown as { readonly internal: symbol }).internal
] ?? { core: { runMicrotasks: (): void => {} } };

/** Hears what isolates are given, and give. */
export interface LogTap {
  /** A session goes on in an epoch: from this checkpoint, through these pieces of its log. */
  opened(
    name: { class: string; id: string },
    epoch: number,
    at: number,
    entries: readonly Uint8Array[],
    by: string,
  ): void;
  committed(name: { class: string; id: string }, epoch: number, commit: Commit): void;
}

/** What broken variants put their hands on. */
export interface IsolateWrongs {
  readonly open?: (open: OpenSession) => OpenSession;
  readonly sink?: (sink: ChannelSink, open: OpenSession) => ChannelSink;
  /** A piece of a log that is followed; null: it is not handed on. */
  readonly piece?: (bytes: Uint8Array, open: OpenSession) => Uint8Array | null;
}

/** What they need of their process. */
export interface IsolatesPorts {
  /** Calls back in this process, unless it has died. */
  readonly after: (ms: number, run: () => void) => () => void;
  readonly wallMs: () => number;
  /** Of isolates that begin. */
  readonly newClock: () => ClockShare;
  readonly draws: Draws;
  readonly tap: LogTap;
  /** Names their process. */
  readonly by: string;
  readonly wrongs: IsolateWrongs;
  /** A session stands in a way that no operator is to mend. */
  readonly complain: (text: string) => void;
  readonly passes: (point: string) => void;
}

interface Session {
  readonly open: OpenSession;
  sink: ChannelSink;
  epoch: number;
  /** What it was given of the log after its checkpoint. */
  readonly given: Uint8Array[];
}

/** Milliseconds, at most. */
const PIPE_MS = 0.8;
/** Why isolates end here. */
export const LOST = "it was lost";

/** One process's isolates of one kind. */
export class Isolates {
  readonly #ports: IsolatesPorts;
  #loop: TurnLoop | null = null;
  #life = 0;
  #next = 1;
  /** By channel: the newest event that had come when its last turn began. */
  readonly #received = new Map<number, number>();
  readonly #sessions = new Map<number, Session>();
  readonly #pipes = { in: [] as (() => void)[], out: [] as (() => void)[] };

  constructor(ports: IsolatesPorts) {
    this.#ports = ports;
  }

  /** Sessions that are in them. */
  get size(): number {
    return this.#sessions.size;
  }

  /** As `StatefulPool` has it. */
  readonly open = (_app: unknown, session: OpenSession, sink: ChannelSink): Promise<FollowedChannel> => {
    const open = this.#ports.wrongs.open?.(session) ?? session;
    const channel = this.#take(open, sink, open.epoch);
    this.#in(() => {
      this.#tell(channel, open.epoch);
      this.#here().open(channel, open);
    });
    return Promise.resolve(this.#handle(channel));
  };

  readonly follow = (_app: unknown, open: OpenSession, sink: ChannelSink): Promise<FollowedChannel> => {
    const channel = this.#take(open, sink, 0);
    this.#in(() => this.#here().follow(channel, open));
    return Promise.resolve(this.#handle(channel));
  };

  /** All of them are gone at once; it was in the turn of one of their sessions, or of none. */
  lose(isCause: boolean): void {
    this.#life++;
    this.#loop = null;
    const lost = [...this.#sessions];
    this.#sessions.clear();
    const cause = isCause && lost.length > 0 ? this.#ports.draws.pick(lost)[0] : 0;
    for (const [channel, { sink }] of lost) {
      this.#ports.after(PIPE_MS, () => {
        const received = this.#received.get(channel) ?? 0;
        sink.ended({ isPlanned: false, why: LOST, channel, received }, channel === cause);
      });
    }
  }

  #take(open: OpenSession, sink: ChannelSink, epoch: number): number {
    const channel = this.#next++;
    const wrapped = this.#ports.wrongs.sink?.(sink, open) ?? sink;
    this.#sessions.set(channel, { open, sink: wrapped, epoch, given: [open.entries] });
    return channel;
  }

  #tell(channel: number, epoch: number): void {
    const session = this.#sessions.get(channel);
    if (session === undefined) return;
    session.epoch = epoch;
    const { tap, by } = this.#ports;
    tap.opened(session.open, epoch, session.open.checkpoint?.at ?? 0, session.given, by);
  }

  #handle(channel: number): FollowedChannel {
    const loop = () => this.#loop;
    const isolate: FollowedChannel["isolate"] = {
      deliver: (_, event) => this.#in(() => loop()?.deliver(channel, event)),
      acknowledge: (_, what) => this.#in(() => loop()?.acknowledge(channel, what)),
      checkpointNow: () => this.#in(() => loop()?.checkpointNow(channel)),
      holds: () => {},
      killFor: () => this.lose(false),
      closeChannel: () => {
        this.#sessions.delete(channel);
        this.#in(() => loop()?.close(channel));
      },
      piece: (_, bytes) => {
        const { piece } = this.#ports.wrongs;
        const open = this.#sessions.get(channel)?.open;
        const given = piece === undefined || open === undefined ? bytes : piece(bytes, open);
        if (given === null) return;
        this.#in(() => {
          this.#sessions.get(channel)?.given.push(given);
          loop()?.piece(channel, given);
        });
      },
      promote: (_, promotion, sink) => {
        const session = this.#sessions.get(channel);
        if (session !== undefined) session.sink = this.#ports.wrongs.sink?.(sink, session.open) ?? sink;
        this.#in(() => {
          this.#tell(channel, promotion.epoch);
          loop()?.promote(channel, promotion);
        });
      },
    };
    return { channel, isolate };
  }

  /** To the isolates, in order. */
  #in(run: () => void): void {
    const life = this.#life;
    this.#piped("in", () => {
      if (this.#life === life) this.#on(run);
    });
  }

  /** In order, whatever a process's clock makes of a time. */
  #piped(way: "in" | "out", run: () => void): void {
    const pipe = this.#pipes[way];
    pipe.push(run);
    this.#ports.after(this.#ports.draws.between(0, PIPE_MS), () => {
      this.#ports.passes(way === "in" ? "isolate hears" : "isolate says");
      pipe.shift()?.();
    });
  }

  #here(): TurnLoop {
    return this.#loop ??= new TurnLoop(this.#host());
  }

  /** Code of the isolates runs. */
  #on(run: () => void): void {
    stage.loop = this.#loop ?? undefined;
    try {
      run();
    } finally {
      stage.loop = undefined;
    }
  }

  #host(): LoopHost {
    const life = this.#life;
    const { after, wallMs, newClock } = this.#ports;
    const clock = newClock();
    const alive = (run: () => void) => () => {
      if (this.#life === life) this.#on(run);
    };
    return {
      sink: this.#sink(life),
      nowMs: () => Math.floor(wallMs()),
      storeClock: (least) => clock.after(least),
      drain: () => core.runMicrotasks(),
      schedule: (run) => void after(0, alive(run)),
      after: (ms, run) => after(ms, alive(run)),
      mark: (channel, received) => void this.#received.set(channel, received),
      make: (className, program) => {
        const slot: SessionSlot = { making: program };
        (globalThis as { [SESSION_SLOT]?: SessionSlot })[SESSION_SLOT] = slot;
        try {
          return new CLASSES[className as ClassName]();
        } finally {
          slot.making = undefined;
        }
      },
      envOf: (program) => new ProgramStore(program),
    };
  }

  /** What they say arrives a while later, in order; that of a lost isolate may still. */
  #sink(life: number): SessionSink {
    const to =
      <A extends unknown[]>(say: (session: Session, ...args: A) => void) => (channel: number, ...args: A) => {
        this.#piped("out", () => {
          const session = this.#sessions.get(channel);
          if (session !== undefined && this.#life === life) say(session, ...args);
        });
      };
    const { tap } = this.#ports;
    const later = to(({ sink }, commit: Commit) => sink.commit(commit));
    return {
      opened: to(({ sink }, opened) => sink.opened(opened)),
      commit: (channel, commit) => {
        const session = this.#sessions.get(channel);
        if (session !== undefined) tap.committed(session.open, session.epoch, commit);
        later(channel, commit);
      },
      call: to(({ sink }, call) => sink.call(call)),
      dropped: to(({ sink }, call) => sink.dropped(call)),
      checkpoint: to(({ sink }, checkpoint) => sink.checkpointed(checkpoint)),
      parked: to(({ sink }, parked) => {
        if (parked.code !== "handler_threw") {
          this.#ports.complain(`parked: ${parked.code}: ${parked.message}`);
        }
        sink.parked(parked);
      }),
      log: to(({ sink }, level: string, text: string) => sink.log(level, text)),
    };
  }
}
