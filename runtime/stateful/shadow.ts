/**
 * Shadow of `dev --check-determinism`: each stateful session is replayed, at every commit point, in an isolate of its
 * own that never ran another, from the checkpoint before and the log after it; and what came of it leaves when the
 * replay has done the same. State that sessions share in a module, sources that are not recorded, and what a checkpoint
 * does not hold show there at once, with one session alone; without it they show when a home is lost.
 *
 * Life: `open` (as the pool's) → what the isolate says waits in a queue → replays, one after the other → it goes on to the
 * home → closed with the channel. One that does otherwise parks the session.
 *
 * SH1  Every entry is replayed, and nothing of a commit point leaves before: answers, messages, writes and timers wait in
 *      the order in which they were made. What waits for one replay is replayed together.
 * SH2  The session that serves is not changed by it, but for being parked, and for a checkpoint at each rest: so that the
 *      next message is replayed from there, by a program that has nothing but what the checkpoint has.
 * SH3  What it answered, and what the replay did, is told with its contents: they are the developer's own.
 */
import {
  type Call,
  type Checkpoint,
  type Commit,
  type KeptCheckpoint,
  type OpenedProgram,
  type OpenSession,
  type Parked,
  shownCall,
  shownOutput,
  shownSend,
  shownTimer,
  shownWrite,
} from "../../functions/sessions/turn/mod.ts";
import { readEntries } from "../../functions/sessions/turn/log_entry.ts";
import { Writer } from "../../store/model/codec.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import type { ChannelSink, OpenChannel } from "../../functions/sessions/serve/ports.ts";
import { entryView } from "../../functions/sessions/serve/log_view.ts";

/** Entries that came together, and the number of the first of them. */
type Increment = Pick<Commit, "first" | "entries">;

/** Log that is replayed, and what waits for that. */
interface Snapshot {
  readonly checkpoint: KeptCheckpoint | null;
  readonly log: Increment[];
  readonly waiting: Waiting[];
  /** Secrets of the app since that checkpoint, the newest last: the session sees one of them throughout. */
  readonly secrets: Secrets[];
}

type Secrets = Readonly<Record<string, string>>;

/** Message of the isolate on its way to the home. */
interface Waiting {
  pass(): void;
  /** Acts of the session up to there, in words (SH3). */
  readonly did: readonly string[];
  isChecked: boolean;
}

/** Site, as checking needs it. */
export interface ShadowServices {
  readonly pool: Pick<StatefulPool, "open" | "openAlone">;
  /** Reports that a shadow could not be run: nothing was checked. */
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** Pool that checks (see the file's header). */
export class CheckedPool {
  readonly #services: ShadowServices;
  /** Promise of the last replay. One at a time: each is a process. */
  #tail: Promise<void> = Promise.resolve();

  constructor(services: ShadowServices) {
    this.#services = services;
  }

  /** Opens a session, as {@link StatefulPool.open} does. */
  async open(app: IsolateApp, session: OpenSession, sink: ChannelSink): Promise<OpenChannel> {
    const secrets = () => app.secrets?.() ?? {};
    const shadow = new Shadow(session, sink, secrets, (take) => this.#replayed(app, session, take));
    const open = await this.#services.pool.open(app, session, shadow);
    shadow.checkpointNow = () => open.isolate.checkpointNow(open.channel);
    return open;
  }

  /** Resolves when nothing waits to be checked. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /** Replays a snapshot. Returns what the replay was parked for; null: it did as the log says. */
  #replayed(app: IsolateApp, session: OpenSession, take: () => Snapshot | null): Promise<Parked | null> {
    const replayed = this.#tail.then(async () => {
      const snapshot = take();
      if (snapshot === null) return null;
      try {
        let differs: Parked | null = null;
        for (const secrets of snapshot.secrets.toReversed()) {
          const as = { ...app, secrets: () => secrets };
          const parked = await this.#replay(as, { ...session, ...openOf(snapshot), shows: true });
          if (parked === null) return null;
          differs ??= parked;
        }
        return differs;
      } catch (error) {
        this.#services.note("shadow_failed", { class: session.class, id: session.id, error: String(error) });
        return null;
      }
    });
    this.#tail = replayed.then(() => {});
    return replayed;
  }

  async #replay(app: IsolateApp, session: OpenSession): Promise<Parked | null> {
    const done = Promise.withResolvers<Parked | null>();
    const nothing = () => {};
    const isolate = await this.#services.pool.openAlone(app);
    try {
      isolate.open(session, {
        opened: (_: OpenedProgram) => done.resolve(null),
        parked: (parked) => done.resolve(parked),
        ended: ({ why }) => done.reject(new Error(why)),
        ...{ commit: nothing, call: nothing, dropped: nothing, checkpointed: nothing, log: nothing },
      });
      return await done.promise;
    } finally {
      await isolate.close();
    }
  }
}

const openOf = ({ checkpoint, log }: Snapshot): Pick<OpenSession, "checkpoint" | "entries"> => {
  const writer = new Writer();
  for (const { entries } of log) writer.raw(entries);
  return { checkpoint, entries: writer.done() };
};

/** Shadow of one session: holds back what its isolate says, and takes down what is to be replayed. */
class Shadow implements ChannelSink {
  /** Has the session write a checkpoint when it rests. */
  checkpointNow: (() => void) | undefined;
  readonly #sink: ChannelSink;
  readonly #secrets: () => Secrets;
  readonly #check: (take: () => Snapshot | null) => Promise<Parked | null>;
  #checkpoint: KeptCheckpoint | null;
  #log: Increment[];
  #seen: Secrets[];
  /** Snapshot of a commit point whose replay has not begun. */
  #next: Snapshot | null = null;
  readonly #queue: Waiting[] = [];
  /** Acts of the handler that runs before its commit point, in words. */
  #did: string[] = [];
  #isOver = false;

  constructor(
    session: OpenSession,
    sink: ChannelSink,
    secrets: () => Secrets,
    check: (take: () => Snapshot | null) => Promise<Parked | null>,
  ) {
    this.#sink = sink;
    this.#secrets = secrets;
    this.#seen = [secrets()];
    this.#check = check;
    this.#checkpoint = session.checkpoint;
    this.#log = [{ first: (session.checkpoint?.at ?? 0) + 1, entries: session.entries }];
  }

  opened(opened: OpenedProgram): void {
    this.#passes(() => this.#sink.opened(opened));
  }

  commit(commit: Commit): void {
    const pass = () => this.#sink.commit(commit);
    this.#did.push(
      ...commit.calls.map(shownCall),
      ...commit.effects.flatMap(({ mutations }) => mutations.map(shownWrite)),
      ...commit.effects.flatMap(({ sends = [] }) => sends.map(shownSend)),
      ...commit.timers.map(shownTimer),
      ...commit.outputs.map(shownOutput),
    );
    if (commit.count === 0) return this.#passes(pass);
    this.#log.push(commit);
    this.#next?.log.push(commit);
    const secrets = this.#secrets();
    const isSeen = JSON.stringify(this.#seen.at(-1)) === JSON.stringify(secrets);
    // The snapshot has the same list.
    if (!isSeen) this.#seen.push(secrets);
    if (!commit.isPoint || isCheckpoint(commit)) return this.#passes(pass);
    const waiting = { pass, did: this.#did, isChecked: false };
    this.#did = [];
    this.#queue.push(waiting);
    this.#wants(waiting);
    this.checkpointNow?.(); // SH2
  }

  call = (call: Call): void => {
    this.#did.push(shownCall(call));
    this.#passes(() => this.#sink.call(call));
  };
  dropped: ChannelSink["dropped"] = (call) => this.#passes(() => this.#sink.dropped(call));
  log: ChannelSink["log"] = (level, text) => this.#sink.log(level, text);

  checkpointed(checkpoint: Checkpoint): void {
    const { at, bytes, state, on } = checkpoint;
    const before = on === null ? [] : this.#checkpoint?.state ?? [];
    this.#checkpoint = { at, bytes, state: [...before, ...state] };
    this.#log = this.#log.filter(({ first }) => first > checkpoint.at);
    this.#seen = [this.#secrets()];
    this.#passes(() => this.#sink.checkpointed(checkpoint));
  }

  parked(parked: Parked): void {
    this.#passes(() => {
      this.#isOver = true;
      this.#sink.parked(parked);
    });
  }

  ended: ChannelSink["ended"] = (end, isCause) => {
    // What was not checked has not left: the next opening asks for it again.
    this.#isOver = true;
    this.#sink.ended(end, isCause);
  };

  /** Passes a message on, behind all that waits. */
  #passes(pass: () => void): void {
    this.#queue.push({ pass, did: [], isChecked: true });
    this.#pump();
  }

  #pump(): void {
    while (!this.#isOver && this.#queue[0]?.isChecked === true) this.#queue.shift()?.pass();
  }

  /** Has a commit point replayed (SH1). */
  #wants(waiting: Waiting): void {
    if (this.#next !== null) return void this.#next.waiting.push(waiting);
    const snapshot: Snapshot = {
      checkpoint: this.#checkpoint,
      log: [...this.#log],
      waiting: [waiting],
      secrets: this.#seen,
    };
    this.#next = snapshot;
    const take = (): Snapshot | null => {
      this.#next = null;
      return this.#isOver ? null : snapshot;
    };
    this.#check(take).then((parked) => {
      if (this.#isOver) return;
      if (parked !== null) return this.#differs(parked, snapshot);
      for (const each of snapshot.waiting) each.isChecked = true;
      this.#pump();
    });
  }

  /** Parks the session: its replay did otherwise (SH3). */
  #differs(parked: Parked, { waiting, log, checkpoint }: Snapshot): void {
    this.#isOver = true;
    const before = waiting.flatMap(({ did }) => did);
    const again = actsOf(parked);
    const first = before.find((each) => !again.includes(each));
    const then = again.find((each) => LEAVES.test(each) && !before.includes(each));
    const values = first === undefined && then === undefined
      ? ""
      : `. First: ${first ?? "nothing more"}. Replayed: ${then ?? "nothing more"}`;
    const call = calledIn(parked, log, checkpoint);
    const what = call === undefined ? "" : ` of ${call}`;
    this.#sink.parked({
      ...parked,
      message:
        `a replay${what} alone, in an isolate of its own, from the checkpoint before it, does otherwise: ` +
        `${parked.message}${values}`,
      detail: { ...parked.detail, ...call === undefined ? {} : { call }, first: before.map(act) },
    });
  }
}

/** Reports whether nothing was done but a checkpoint: there is nothing to compare. */
function isCheckpoint({ entries }: Commit): boolean {
  return readEntries(entries).every(({ kind }) => kind === "checkpoint");
}

/** Pattern of what an isolate does that its site sees, too. */
const LEAVES =
  /^(?:output |writes "|deletes "|call \d+ \((?:get|list|commit|fetch|session)\)|(?:sets|clears) the timer )/;

const act = (what: string) => ({ what, at: "" });

/** Returns what a replay says that it did. */
function actsOf({ detail: { did } }: Parked): string[] {
  return Array.isArray(did) ? did.map((each: { readonly what?: unknown }) => String(each.what)) : [];
}

/** Returns the entry that was replayed otherwise, as the log has it. */
function calledIn(
  { detail: { sequence } }: Parked,
  log: readonly Increment[],
  checkpoint: KeptCheckpoint | null,
): string | undefined {
  const entries = log.flatMap(({ entries }) => readEntries(entries));
  const entry = entries[Number(sequence) - 1 - (checkpoint?.at ?? 0)];
  return entry === undefined ? undefined : callText(entryView(entry));
}

/** Returns a call as its author wrote it, else what the entry is. */
function callText(
  { kind, method, args, fetch, peer, message, name }: Readonly<Record<string, unknown>>,
): string {
  if (typeof method === "string") {
    return `${method}(${Array.isArray(args) ? args.map((each) => JSON.stringify(each)).join(", ") : args})`;
  }
  if (typeof fetch === "string") return `fetch(${fetch})`;
  if (kind === "message") return `onMessage(${JSON.stringify(message)}) of ${peer}`;
  return kind === "timer" ? `onTimer(${JSON.stringify(name)})` : String(kind);
}
