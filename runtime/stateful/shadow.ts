/**
 * `dev --check-determinism`: each stateful session is replayed, after every commit point, in an isolate of its own that
 * never ran another, from the newest checkpoint and the log after it. State that sessions share in a module, sources
 * that are not recorded, and what a checkpoint does not hold show there at once; without it they show when a home is
 * lost.
 *
 * Life: `open` (as the pool's) → snapshots, one replay after the other → closed with the channel. One that does otherwise
 * parks the session.
 *
 * SH1  Every entry is replayed: a snapshot that waits is only replaced by one that has all of its entries, from the same
 *      checkpoint.
 * SH2  The session that serves is not changed by it, but for being parked.
 */
import type {
  Checkpoint,
  Commit,
  KeptCheckpoint,
  Opened,
  OpenSession,
  Parked,
} from "../../functions/turns/mod.ts";
import { Writer } from "../../store/codec.ts";
import type { ChannelSink, IsolateApp, OpenChannel, StatefulPool } from "../isolate/mod.ts";

/** Entries that came together, and the number of the first of them. */
type Increment = Pick<Commit, "first" | "entries">;

/** What is replayed. */
interface Snapshot {
  readonly checkpoint: KeptCheckpoint | null;
  readonly log: readonly Increment[];
}

/** What checking needs of its site. */
export interface ShadowServices {
  readonly pool: Pick<StatefulPool, "open" | "openAlone">;
  /** A shadow could not be run: nothing was checked. */
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** See the file's header. */
export class CheckedPool {
  readonly #services: ShadowServices;
  /** One replay at a time: each is a process. */
  #tail: Promise<void> = Promise.resolve();

  constructor(services: ShadowServices) {
    this.#services = services;
  }

  /** As {@link StatefulPool.open}. */
  async open(app: IsolateApp, session: OpenSession, sink: ChannelSink): Promise<OpenChannel> {
    const shadow = new Shadow(session, sink, (snapshot) => this.#replayed(app, session, snapshot));
    return await this.#services.pool.open(app, session, shadow);
  }

  /** Resolves when nothing waits to be checked. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /** What a replay was parked for; null: it did as the log says. */
  #replayed(app: IsolateApp, session: OpenSession, take: () => Snapshot | null): Promise<Parked | null> {
    const replayed = this.#tail.then(async () => {
      const snapshot = take();
      if (snapshot === null) return null;
      try {
        return await this.#replay(app, { ...session, ...openOf(snapshot) });
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
        opened: (_: Opened) => done.resolve(null),
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

/** One session: passes on what its isolate says, and takes down what is to be replayed. */
class Shadow implements ChannelSink {
  readonly #sink: ChannelSink;
  readonly #check: (take: () => Snapshot | null) => Promise<Parked | null>;
  #checkpoint: KeptCheckpoint | null;
  #log: Increment[];
  #waiting: Snapshot[] = [];
  #isOver = false;

  constructor(
    session: OpenSession,
    sink: ChannelSink,
    check: (take: () => Snapshot | null) => Promise<Parked | null>,
  ) {
    this.#sink = sink;
    this.#check = check;
    this.#checkpoint = session.checkpoint;
    this.#log = [{ first: (session.checkpoint?.at ?? 0) + 1, entries: session.entries }];
  }

  opened(opened: Opened): void {
    this.#sink.opened(opened);
  }

  commit(commit: Commit): void {
    this.#sink.commit(commit);
    if (commit.count === 0) return;
    this.#log.push(commit);
    if (commit.isPoint) this.#wants();
  }

  call: ChannelSink["call"] = (call) => this.#sink.call(call);
  dropped: ChannelSink["dropped"] = (call) => this.#sink.dropped(call);
  log: ChannelSink["log"] = (level, text) => this.#sink.log(level, text);

  checkpointed(checkpoint: Checkpoint): void {
    const { at, bytes, state, on } = checkpoint;
    const before = on === null ? [] : this.#checkpoint?.state ?? [];
    this.#checkpoint = { at, bytes, state: [...before, ...state] };
    this.#log = this.#log.filter(({ first }) => first > checkpoint.at);
    this.#sink.checkpointed(checkpoint);
  }

  parked(parked: Parked): void {
    this.#isOver = true;
    this.#sink.parked(parked);
  }

  ended: ChannelSink["ended"] = (end, isCause) => {
    this.#isOver = true;
    this.#sink.ended(end, isCause);
  };

  /** SH1 */
  #wants(): void {
    const snapshot = { checkpoint: this.#checkpoint, log: [...this.#log] };
    if (this.#waiting.at(-1)?.checkpoint === snapshot.checkpoint) {
      this.#waiting.pop();
      this.#waiting.push(snapshot);
      return;
    }
    this.#waiting.push(snapshot);
    this.#check(() => this.#isOver ? null : this.#waiting.shift() ?? null).then((parked) => {
      if (parked === null || this.#isOver) return;
      const message = `a replay of it alone, in an isolate of its own, does otherwise: ${parked.message}`;
      this.parked({ ...parked, message });
    });
  }
}
