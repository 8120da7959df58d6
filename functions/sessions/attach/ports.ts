/** Ports of the two sides: what they need of the world around them, and what they tell it. */
import type { OpenedPeer, Output } from "../turn/commit.ts";
import type { HandledEvent } from "../turn/event.ts";
import type { HostCopy, OpenedHostLog } from "../sealed/open_log.ts";
import type { PeerRetry } from "./frame.ts";
import type { Remembered } from "./remembered.ts";

/** Time that never goes back. */
export interface PeerClock {
  nowMs(): number;
  /** Calls back once, unless cancelled. */
  after(ms: number, run: () => void): () => void;
}

/** Sender's side of one end of an ordered stream of binary messages. It can break at any time. */
export interface Channel {
  /** Sends a frame, or drops it where the channel is broken. Keeps the bytes: nobody changes them afterwards. */
  send(frame: Uint8Array<ArrayBuffer>): void;
  /**
   * Returns the bytes that the channel has taken and not handed on, with what that costs in memory: a home gives up a
   * channel that nobody reads. Without it the channel bounds that by itself.
   */
  readonly bufferedBytes?: () => number;
  /** Ends the channel, as a WebSocket's close: what was sent before goes out, and nothing more is taken. */
  close(code: number, reason: string): void;
}

/** Receiver's side of the same end: the program that reads the stream calls these. Neither throws. */
export interface ChannelReader {
  /** Takes a binary message. */
  frame(bytes: Uint8Array): void;
  /** Notes that the channel has ended, or will bring nothing more, for whatever reason. */
  broken(): void;
}

/** Close codes of channels that carry frames. The reason, where there is one, is in the frame before. */
export const CLOSE = { done: 1000, refused: 4000, broken: 4001 } as const;

// ── Host side ──

/** Reason why a host side has no channel any more, though its peer lives. */
export type Lost =
  | { readonly kind: "broken" }
  /** The home is elsewhere now: at `site`, where it was said. */
  | { readonly kind: "moved"; readonly site: string | null }
  /** Nothing came for too long, or what was sent was not acknowledged: another site may do better. */
  | { readonly kind: "silent" | "stalled" }
  /** An old home answered: the session has gone on elsewhere. */
  | { readonly kind: "stale" }
  /** Bytes came that are no frame, or a frame out of order. */
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };

/** End of a host side, for good. */
export type HostEnd =
  /** Close as a WebSocket's, said by this side, or by the session (`isRemote`). */
  | { readonly kind: "bye"; readonly code: number; readonly reason: string; readonly isRemote: boolean }
  /** `reset`: a new host side begins anew, as a new peer. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string; readonly retry: PeerRetry };

/** Listener of a host side. Called with its state up to date: what it calls from there takes effect at once. */
export interface HostListener {
  /** Notes a welcome, on each channel: messages flow. */
  opened?(): void;
  /** Takes an output of the session: each once, in order. */
  message(message: string | Uint8Array, sequence: number): void;
  /**
   * Notes that the handler of a message threw: it changed nothing. Called at most once for a message; not where a home
   * died meanwhile.
   */
  rejected?(sequence: number, code: string, message: string): void;
  /** Notes that messages up to this one are in the log. */
  acknowledged?(sequence: number): void;
  /** Notes that there is no channel: `connected` with another one goes on where it stood. */
  lost(why: Lost): void;
  /** Notes the end: nothing follows. */
  closed(end: HostEnd): void;
}

/** Log of its session that a host side holds (functions/sessions/sealed, HostLog). All synchronous. */
export interface HeldLog {
  /** Newest epoch that was promised, also by what is held; 0: nobody waits for it. */
  readonly promised: number;
  /** Returns where the log ends, for a hello: as bytes (functions/sessions/sealed, decodeSummary). */
  summary(): Uint8Array;
  /** Promises an epoch (HG1). Returns all records, oldest first; null where a later one was promised. */
  promise(epoch: number): readonly Uint8Array[] | null;
  /** Takes a record of a home of that epoch. */
  take(epoch: number, record: Uint8Array): "held" | "stale" | "invalid";
  /** Drops all that is held: the peer is over, or begins anew. */
  drop(): void;
}

// ── Home side ──

/** Event of a turn that a peer causes. */
export type PeerInput = Extract<HandledEvent, { readonly kind: "attach" | "message" | "detach" }>;

/** Output to a peer, as a commit gives it out: a message, or what sends the peer away. */
export type OutputToPeer = Output;

/** Hosts that the arbiter has on record, or may have. */
export interface HostsOnRecord {
  /** Reports whether an opening would wait for a host: it is on record, or may be. */
  isAwaited(host: string): boolean;
}

/** Log as hosts are sent it (functions/sessions/sealed, HostFeeds). */
export interface PeerFeeds extends HostsOnRecord {
  /** Begins to feed a host, on a new channel, whose log ends with this tag; null: it has none. */
  attach(host: string, tag: Uint8Array | null): void;
  /** Notes that a host's channel is broken. */
  detach(host: string): void;
  /** Notes that a host is no peer any more. */
  forget(host: string): void;
  /** Returns the last entry that a host may be told; −1: nothing yet. */
  reach(host: string): number;
  /** Returns the records that go before, or with, the next frame to a host. */
  next(host: string): readonly Uint8Array[];
  /** Notes that a host holds so many records of its channel. */
  taken(host: string, records: number): void;
  /**
   * Returns the first record of its channel that a host has not said to hold; 0: it holds all, or nothing is waited
   * for.
   */
  untaken(host: string): number;
  /** Returns how many records of its channel a host was sent. */
  sent(host: string): number;
  /**
   * Notes that a host has been waited for long enough; `isOut`: it holds nothing before `again`, whatever it has taken.
   */
  late(host: string, isOut: boolean): void;
  /** Lets a host hold the log again, once it has taken what it lacked. */
  again(host: string): void;
}

/** Request of an opening to hosts for the log. */
export interface LogAsk {
  readonly epoch: number;
  readonly hosts: readonly string[];
  readonly withinMs: number;
  /**
   * True where the opening goes on without hosts that do not come (docs/protocol/hosts.md, HO8), and without what they
   * say of later epochs.
   */
  readonly isForced?: boolean;
}

/** Logs that hosts gave back, opened; "superseded": one has promised a later epoch. */
export type LogAnswers = ReadonlyMap<string, HostCopy | null> | "superseded";

/** State of the peers in the log of a session that has been opened. */
export interface LoggedPeers {
  readonly epoch: number;
  readonly peers: readonly OpenedPeer[];
  /**
   * Outputs that are not acknowledged, as far as is known: of each peer the last ones, up to `sent`. Outputs to others
   * than peers are ignored.
   */
  readonly outputs: readonly OutputToPeer[];
  /** Feeds, where hosts hold the log; left out: all of the log is at all owners. */
  readonly ahead?: {
    readonly feeds: PeerFeeds;
    /** Last entry that is released; all of the log that the session was opened with is. */
    readonly released: number;
    /** Hosts that were asked for the log: one that is not there by now is not waited for. */
    readonly asked: readonly string[];
  };
  /**
   * Hosts on record where there are no feeds, since the class's hosts hold the log no longer (reach.ts, PR5); left out:
   * the feeds know, and without feeds nobody is.
   */
  readonly onRecord?: HostsOnRecord;
  /** Hosts that did not come back, and are no peers any more (docs/protocol/hosts.md, HO8). */
  readonly leftBehind?: readonly string[];
}

/** Commit that was appended, before it is released: hosts that are ahead may be told its outputs. */
export interface Appended {
  /** Last entry of the commit. */
  readonly entry: number;
  /** Outputs of the commit; those to others than peers are ignored. */
  readonly outputs: readonly OutputToPeer[];
}

/** Commit that is at all owners, as far as it is about peers. Commits are told in their order. */
export interface Released {
  /** Events of peers that are done with it, in the order in which they were delivered. */
  readonly done: readonly {
    readonly event: PeerInput;
    /** Error of a handler that threw, or took its isolate with it. A detach is one all the same. */
    readonly rejected: { readonly code: string; readonly message: string } | null;
  }[];
  /** Outputs of the commit; those to others than peers are ignored, and those that were told of as appended, too. */
  readonly outputs: readonly OutputToPeer[];
  /** Last entry of the commit, where hosts hold the log. */
  readonly entry?: number;
}

/** Site, as a home side needs it. */
export interface HomePorts {
  readonly clock: PeerClock;
  /** Hands an event to the session. `released` says when it is done; after `opened` those that are not come again. */
  deliver(event: PeerInput): void;
  /**
   * Tells the session that peers have these outputs, and that it keeps them no longer (functions/sessions/turn,
   * Acknowledged).
   */
  acknowledge(outputs: Readonly<Record<string, number>>): void;
  /** Returns an id that no peer of this session ever had. */
  newId(): string;
  /**
   * Returns keys that only this cluster can make of a peer's id and this session's name, 16 to 64 bytes each, the same
   * at each site: the first is given to peers, the others are known, too.
   */
  keysOf(id: string): readonly [Uint8Array, ...Uint8Array[]];
  /** Opens the log that a host gave back (functions/sessions/sealed); left out: hosts hold none. */
  openLog?(host: string, records: readonly Uint8Array[]): OpenedHostLog;
  /** Looks whether this home still is one: a peer has seen a home of this epoch, which is newer. */
  outrun(epoch: number): void;
  /** Memory of home sides before this one, of the same session; left out: there was none. */
  readonly remembered?: Remembered;
  /** Bounds in place of GRACE_MS, OUTBOX_BYTES_MAX and HANDED_MAX. */
  readonly graceMs?: number;
  readonly outboxBytesMax?: number;
  readonly handedMax?: number;
  readonly peersMax?: number;
}
