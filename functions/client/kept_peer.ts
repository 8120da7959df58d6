/**
 * The kept state of one WebSocket's host side, so that the next page or program goes on with it: the side's identity,
 * how much it has received, and the messages that it sent and that are not in the session's log yet.
 *
 *   ws/NAME/head        text id, bytes key, varints epoch, received, first
 *   ws/NAME/m/SEQUENCE  a message, tagged as host sides keep them
 *   ws/NAME/program     varint: how many programs have begun with what is kept, the last one among them
 *   ws/NAME/log, r/…    the session's log, where its hosts hold it (kept_log.ts)
 *
 * K1  Nothing leaves before what it says is kept: no acknowledgement before the received message is counted here, no
 *     message, record or promise before it is here. So whatever the home believes of this side, the next one can stand
 *     for.
 * K2  A message that was given to the program, and not yet acknowledged when it ended, is given to the next program
 *     again.
 * K3  Identity, messages and log are found together or not at all: where one of them is not whole, none of them counts.
 * K4  Where nothing can be kept any more, a side that holds a log says nothing any more: it stands for what is kept. A
 *     side that holds none goes on in memory.
 * K5  A program that goes on with what is kept has a higher number than all before it, before it says anything: a home
 *     that hears of both knows which is the later one. Where a storage was put back, or copied, that number may be
 *     another program's, too.
 */
import type { Channel, HostState } from "../sessions/attach/mod.ts";
import { PROGRAMS_MAX } from "../sessions/attach/limits.ts";
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { ClientLog } from "./kept_log.ts";
import type { ClientStorage, StorageChange } from "./ports.ts";

/** Digits of a message's sequence: padded numbers sort as texts. */
const DIGITS = 16;
/** Pages of one address that are open at once and are all kept; more are as if there were no storage. */
const NAMES_MAX = 16;

/** Host side of one WebSocket, as it is kept in a storage. */
export class KeptPeer {
  readonly #storage: ClientStorage;
  readonly #name: string;
  readonly #release: () => void;
  #saved: HostState | null;
  #log: ClientLog;
  /** Number of this program (K5). */
  readonly program: number;
  #isNumbered = false;
  #changes = new Map<string, Uint8Array | null>();
  #last: Promise<unknown> = Promise.resolve();
  /** Commit that waits for `#last`. */
  #next: Promise<unknown> | null = null;
  /** Sequences of messages that are kept: from the first to before the end. */
  #first = 1;
  #end = 1;
  #isOver = false;
  #isSoon = false;

  private constructor(
    storage: ClientStorage,
    own: { readonly name: string; readonly release: () => void },
    kept: readonly (readonly [string, Uint8Array])[],
  ) {
    this.#storage = storage;
    this.#name = own.name;
    this.#release = own.release;
    let programs = 0;
    try {
      programs = programsIn(own.name, kept);
      this.#saved = savedIn(own.name, kept);
      this.#log = this.#logOf(this.#saved === null ? [] : kept);
      // No home of an earlier epoch than was promised is heard, whatever was seen of later ones.
      this.#saved &&= { ...this.#saved, epoch: Math.max(this.#saved.epoch, this.#log.promised) };
    } catch {
      this.#saved = null;
      this.#log = this.#logOf([]);
    }
    this.program = Math.min(programs + 1, PROGRAMS_MAX);
    if (this.#saved !== null) {
      this.#number();
      this.#first = this.#saved.first;
      this.#end = this.#first + this.#saved.messages.length;
    } else for (const [name] of kept) this.#put(name, null); // K3: nothing of it is taken for the next one's
  }

  /** Opens the first kept peer of an address that no other page has; null where there are too many. */
  static async open(storage: ClientStorage, path: string): Promise<KeptPeer | null> {
    for (let number = 0; number < NAMES_MAX; number++) {
      const name = `ws/${encodeURIComponent(path)}/${number}/`;
      const release = await storage.claim(name, true);
      if (release !== null) {
        return new KeptPeer(storage, { name, release }, await storage.list(name));
      }
    }
    return null;
  }

  /** Forgets all kept peers that no page has open: the next user is another one. */
  static async forgetAll(storage: ClientStorage): Promise<void> {
    const kept = (await storage.list("ws/")).map(([each]) => each);
    for (const name of new Set(kept.map((each) => each.split("/", 3).join("/") + "/"))) {
      const release = await storage.claim(name, false);
      if (release === null) continue;
      await storage.commit(kept.filter((each) => each.startsWith(name)).map((each) => [each, null]));
      release();
    }
  }

  /** State that the program before left; null where there is none. */
  get saved(): HostState | null {
    return this.#saved;
  }

  /** Session's log as this side holds it. */
  get log(): ClientLog {
    return this.#log;
  }

  /** Keeps the side's changed state: messages from `first` on are kept. */
  head(
    { identity, epoch, received }: Pick<HostState, "identity" | "epoch" | "received">,
    first: number,
  ): void {
    for (; this.#first < first; this.#first++) this.#put(messageName(this.#name, this.#first), null);
    this.#number();
    const w = new Writer().text(identity.id).bytes(identity.key).uint(epoch).uint(received).uint(first);
    this.#put(`${this.#name}head`, w.done());
  }

  message(sequence: number, tagged: Uint8Array): void {
    this.#put(messageName(this.#name, sequence), tagged);
    this.#end = sequence + 1;
    // Without a channel no other call would flush: several messages of one moment go together.
    if (this.#isSoon) return;
    this.#isSoon = true;
    queueMicrotask(() => {
      this.#isSoon = false;
      this.#flush().catch(() => {}); // the next send fails, too
    });
  }

  /** Drops a message that was not taken. */
  dropped(sequence: number): void {
    this.#put(messageName(this.#name, sequence), null);
    this.#end = sequence;
  }

  /**
   * Returns a channel that sends after all that was to be kept is kept (K1).
   *
   * @param failed is called where nothing can be kept.
   */
  channel(inner: Channel, failed: (error: unknown) => void): Channel {
    return {
      send: (frame) =>
        void this.#flush().then(
          () => inner.send(frame),
          (error) => {
            this.#isOver = true; // and the name stays taken: no other page of now goes on with it
            this.#changes.clear();
            inner.close(1000, "");
            failed(error);
          },
        ),
      close: (code, reason) => {
        const close = () => inner.close(code, reason);
        this.#last.then(close, close);
      },
    };
  }

  /** Forgets all that is kept: there is nothing to go on with. */
  async forget(): Promise<void> {
    this.#saved = null;
    // The changes are not cleared: among them may be removals.
    for (const name of this.#changes.keys()) this.#put(name, null);
    for (; this.#first < this.#end; this.#first++) this.#put(messageName(this.#name, this.#first), null);
    this.#put(`${this.#name}head`, null);
    this.#put(`${this.#name}program`, null);
    this.#isNumbered = false;
    this.#log.drop();
    this.#first = this.#end = 1;
    await this.#flush();
  }

  /** Ends the kept peer: the socket is over, and its name is free. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    await this.forget().catch(() => {}); // a peer that comes with the rest is refused
    this.#isOver = true;
    this.#release();
  }

  /** Lets the name go with all that is kept: the program ends, and the next one goes on. */
  async leave(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#flush().catch(() => {});
    this.#release();
  }

  #number(): void {
    if (this.#isNumbered) return;
    this.#isNumbered = true;
    this.#put(`${this.#name}program`, new Writer(8).uint(this.program).done());
  }

  #logOf(kept: readonly (readonly [string, Uint8Array])[]): ClientLog {
    return new ClientLog(this.#name, kept, (name, bytes) => this.#put(name, bytes));
  }

  #put(name: string, bytes: Uint8Array | null): void {
    if (!this.#isOver) this.#changes.set(name, bytes);
  }

  /** Commits all changes so far: those that come while a commit is under way go into the next. */
  #flush(): Promise<unknown> {
    if (this.#changes.size === 0) return this.#last;
    return this.#next ??= this.#last = this.#last.then(() => {
      const changes: StorageChange[] = [...this.#changes];
      this.#changes = new Map();
      this.#next = null;
      return this.#storage.commit(changes);
    });
  }
}

const messageName = (name: string, sequence: number): string =>
  `${name}m/${String(sequence).padStart(DIGITS, "0")}`;

/** Returns how many programs were counted; 0: none. @throws CodecError for bytes that are not whole. */
function programsIn(name: string, kept: readonly (readonly [string, Uint8Array])[]): number {
  const programs = kept.find(([each]) => each === `${name}program`)?.[1];
  if (programs === undefined) return 0;
  const r = new Reader(programs);
  const count = r.uint();
  r.end();
  if (count > PROGRAMS_MAX) throw new CodecError(`${count} programs: up to ${PROGRAMS_MAX} are counted`);
  return count;
}

/** Returns the saved state. @throws CodecError for state that is not whole. */
function savedIn(name: string, kept: readonly (readonly [string, Uint8Array])[]): HostState | null {
  const head = kept.find(([each]) => each === `${name}head`)?.[1];
  if (head === undefined) return null;
  const r = new Reader(head);
  const identity = { id: r.text(), key: r.bytes() };
  const epoch = r.uint(), received = r.uint(), first = r.uint();
  r.end();
  const messages: Uint8Array[] = [];
  for (const [each, bytes] of kept) {
    if (!each.startsWith(`${name}m/`)) continue;
    if (each !== messageName(name, first + messages.length)) throw new CodecError("a message is missing");
    messages.push(bytes);
  }
  return { identity, epoch, received, first, messages };
}
