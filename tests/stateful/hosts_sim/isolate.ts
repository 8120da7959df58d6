/**
 * The isolates of one process of a site, in one: it runs the program, event by event, and says what comes of it. It is
 * lost with the process, or alone.
 */
import type {
  Commit,
  HandledEvent,
  OpenedProgram,
  OpenSession,
} from "../../../functions/sessions/turn/mod.ts";
import { subjectOf } from "../../../functions/class/subject.ts";
import type { ChannelSink } from "../../../functions/sessions/serve/ports.ts";
import { packKey } from "../../../store/model/key.ts";
import type { Draws } from "../../sim/random.ts";
import {
  acknowledged,
  apply,
  BLANK,
  decodeEntries,
  decodeState,
  digestAfter,
  encodeEntry,
  encodeState,
  type Entry,
  type Output,
  type State,
  type Write,
} from "./program.ts";

export interface IsolateWrongs {
  /** What nobody has acknowledged is not in a checkpoint. */
  readonly forgetsKept?: boolean;
  /** Who asks whether a turn has written is told that it has not. */
  readonly hidesWrites?: boolean;
}

export interface IsolatePorts {
  /** Calls back in this process, unless it has died. */
  readonly after: (ms: number, run: () => void) => void;
  readonly draws: Draws;
  readonly wrongs: IsolateWrongs;
  /** Chance that after an event it says once more that all is done. */
  readonly idleCommits: number;
  /** Of every second twenty entries' checkpoints: what they are longer by. */
  readonly stateBytes: number;
  made(before: State, after: State, entry: Entry): void;
  /** A session is open, and stands there. */
  stands(state: State): void;
  /** It was lost, and this message of a peer's was to blame. */
  blamed(peer: string, message: number): void;
  complain(message: string): void;
}

type Numbered = HandledEvent & { readonly number: number };

interface Session {
  readonly sink: ChannelSink;
  state: State;
  queue: Numbered[];
  isRunning: boolean;
  through: number;
  isAsked: boolean;
}

const PIPE_MS = 0.4;
const utf8 = new TextEncoder();
const bytesOf = ({ text }: Output, isPeer: boolean): Uint8Array =>
  isPeer ? Uint8Array.of(0, ...utf8.encode(text)) : utf8.encode(text);

/** See the file's header. */
export class Isolate {
  readonly #ports: IsolatePorts;
  readonly #sessions = new Map<number, Session>();
  #next = 1;

  constructor(ports: IsolatePorts) {
    this.#ports = ports;
  }

  /** As a pool of isolates opens a session. */
  open(session: OpenSession, sink: ChannelSink) {
    const channel = this.#next++;
    const { checkpoint, entries } = session;
    let state = checkpoint === null ? BLANK : decodeState(checkpoint.bytes);
    for (const entry of decodeEntries(entries)) {
      const before = state;
      state = apply(state, entry).state;
      if (digestAfter(before.digest, entry) !== state.digest) this.#ports.complain("a replay that differs");
      this.#ports.made(before, state, entry);
    }
    this.#ports.stands(state);
    const one: Session = { sink, state, queue: [], isRunning: false, through: 0, isAsked: false };
    this.#sessions.set(channel, one);
    this.#soon(channel, () => sink.opened(openedOf(one.state)));
    return {
      channel,
      isolate: {
        deliver: (at: number, event: HandledEvent & { readonly number?: number }) => {
          const open = this.#sessions.get(at);
          if (open === undefined) return;
          open.queue.push(event as Numbered);
          this.#run(at, open);
        },
        acknowledge: (at: number, what: Parameters<typeof acknowledged>[1]) => {
          const open = this.#sessions.get(at);
          if (open !== undefined) open.state = acknowledged(open.state, what);
        },
        holds: () => {},
        checkpointNow: (at: number) => {
          const open = this.#sessions.get(at);
          if (open === undefined) return;
          open.isAsked = true;
          this.#run(at, open);
        },
        closeChannel: (at: number) => void this.#sessions.delete(at),
        killFor: () => this.lose(false),
      },
    };
  }

  /** Of sessions that are open here. */
  get states(): State[] {
    return [...this.#sessions.values()].map(({ state }) => state);
  }

  /** It is killed: in a turn, where one runs and is to blame. */
  lose(isBlamed: boolean): void {
    const lost = [...this.#sessions];
    this.#sessions.clear();
    for (const [channel, { sink, queue }] of lost) {
      const kind = queue[0]?.kind;
      const isCause = isBlamed && (kind === "message" || kind === "request");
      const received = queue[0]?.number ?? 0;
      if (isCause && queue[0]?.kind === "message") {
        this.#ports.blamed(queue[0].peer, Number(String(queue[0].message).split(" ")[0]));
      }
      sink.ended({ isPlanned: false, why: "it was lost", channel, received }, isCause);
    }
  }

  #soon(channel: number, run: (session: Session) => void): void {
    this.#ports.after(this.#ports.draws.between(0, PIPE_MS), () => {
      const session = this.#sessions.get(channel);
      if (session !== undefined) run(session);
    });
  }

  #run(channel: number, session: Session): void {
    if (session.isRunning) return;
    session.isRunning = true;
    this.#soon(channel, (session) => {
      session.isRunning = false;
      const event = session.queue.shift();
      if (event !== undefined) this.#handle(channel, session, event);
      else if (session.isAsked) this.#checkpoint(session);
      if (session.queue.length > 0 || session.isAsked) this.#run(channel, session);
    });
  }

  #handle(channel: number, session: Session, event: Numbered): void {
    session.through = event.number;
    const entry = this.#entryOf(session.state, event);
    if (entry === null) return void session.sink.commit(commitOf(session));
    const before = session.state;
    const { state, outputs, writes } = apply(before, entry);
    session.state = state;
    this.#ports.made(before, state, entry);
    const commit = commitOf(session, { entry, outputs, writes });
    const rejected = event.kind === "reject" && event.of !== null
      ? { subject: subjectOf(event.of), attempt: 0, code: event.code, message: event.message }
      : null;
    session.sink.commit(this.#twisted({ ...commit, rejected }));
    if (!this.#ports.draws.chance(this.#ports.idleCommits)) return;
    this.#soon(channel, (session) => session.sink.commit(commitOf(session)));
  }

  #entryOf(state: State, event: Numbered): Entry | null {
    const entry = (kind: Entry["kind"], from: string, sequence = 0, pad = ""): Entry => ({
      ...{ kind, from, sequence, pad },
      draw: this.#ports.draws.integer(0, 1e9),
    });
    const isAttached = (peer: string) => Object.hasOwn(state.received, peer);
    switch (event.kind) {
      case "attach":
        return isAttached(event.peer.id) ? null : entry("attach", event.peer.id);
      case "detach":
        return isAttached(event.peer) ? entry("detach", event.peer) : null;
      case "message": {
        const [sequence, pad = ""] = String(event.message).split(" ");
        return isAttached(event.peer) ? entry("message", event.peer, Number(sequence), pad) : null;
      }
      case "request":
        return entry("request", event.request);
      case "reject":
        if (event.of?.kind === "message") return entry("rejected", event.of.peer);
        return event.of?.kind === "request" ? entry("request", event.of.request) : null;
      case "timer":
        return null;
    }
  }

  #checkpoint(session: Session): void {
    session.isAsked = false;
    const { state } = session;
    const kept = this.#ports.wrongs.forgetsKept === true ? { ...state, kept: [] } : state;
    const isLarge = Math.floor(state.entries / 20) % 2 === 1;
    const bytes = encodeState(kept, isLarge ? this.#ports.stateBytes : 0);
    session.sink.checkpointed({ at: state.entries, on: null, bytes, state: [] });
  }

  #twisted(commit: Commit): Commit {
    if (this.#ports.wrongs.hidesWrites !== true || commit.effects.length === 0) return commit;
    // Asked whether they may be written (functions/sessions/serve/run_versions.ts) first, then how much they send
    // (session_run.ts R11), then for the piece (releases.ts), then whether hosts may be told (session_run.ts R6).
    let times = 0;
    const { effects } = commit;
    return Object.defineProperty({ ...commit }, "effects", { get: () => times++ === 3 ? [] : effects });
  }
}

const REPLICA = 1;

function openedOf({ entries, received, sent, kept, open }: State): OpenedProgram {
  const isPeer = (to: string) => Object.hasOwn(received, to);
  return {
    ...{ sequence: entries, timers: [], calls: [], handling: null, isQuiescent: true, isEnded: false },
    peers: Object.keys(received).map((id) => ({
      ...{ kind: "client", id, isClosed: false },
      received: received[id] ?? 0,
      sent: sent[id] ?? 0,
    })),
    outputs: kept.map((one) => ({ ...one, bytes: bytesOf(one, isPeer(one.to)) })),
    effects: open.map(effectOf),
  };
}

function commitOf(
  { state, through }: Session,
  made?: { readonly entry: Entry; readonly outputs: readonly Output[]; readonly writes: readonly Write[] },
): Commit {
  const isPeer = (to: string) => Object.hasOwn(state.received, to);
  return {
    first: made === undefined ? state.entries + 1 : state.entries,
    count: made === undefined ? 0 : 1,
    entries: made === undefined ? new Uint8Array() : encodeEntry(made.entry),
    ...{ through, isPoint: true, timers: [], calls: [], rejected: null, check: 0, isEnded: false },
    isQuiescent: true,
    outputs: (made?.outputs ?? []).map((one) => ({ ...one, bytes: bytesOf(one, isPeer(one.to)) })),
    effects: (made?.writes ?? []).map(effectOf),
  };
}

const effectOf = ({ effect, text }: Write) => ({
  ...{ effect, clock: effect, replica: REPLICA, atMs: 0 },
  mutations: [{ kind: "set" as const, key: packKey(["w", effect]), value: utf8.encode(text) }],
});
