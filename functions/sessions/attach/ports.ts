/** What the two sides need of the world around them, and what they tell it. */
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

/** One end of an ordered stream of binary messages, as its sender has it. It can break at any time. */
export interface Channel {
  /** Sends, or drops where it is broken. Keeps the bytes: nobody changes them afterwards. */
  send(frame: Uint8Array<ArrayBuffer>): void;
  /**
   * What it has taken and not handed on, with what that costs in memory: a home gives up a channel that nobody reads.
   * Without it the channel bounds that by itself.
   */
  readonly bufferedBytes?: () => number;
  /** Nothing is sent, and nothing wanted of it, any more: what was sent before goes out. As a WebSocket's close. */
  close(code: number, reason: string): void;
}

/** The same end, as its receiver has it: whoever reads the stream calls these. Neither throws. */
export interface ChannelReader {
  /** A binary message came. */
  frame(bytes: Uint8Array): void;
  /** It ended, or will bring nothing more, for whatever reason. */
  broken(): void;
}

/** Close codes of channels that carry frames. The reason, where there is one, is in the frame before. */
export const CLOSE = { done: 1000, refused: 4000, broken: 4001 } as const;

// ── Host side ──

/** Why a host side has no channel any more, though its peer lives. */
export type Lost =
  | { readonly kind: "broken" }
  /** The home is elsewhere now: at `site`, where it was said. */
  | { readonly kind: "moved"; readonly site: string | null }
  /** Nothing came for too long, or what was sent was not acknowledged: another site may do better. */
  | { readonly kind: "silent" | "stalled" }
  /** An old home answered: the session has gone on elsewhere. */
  | { readonly kind: "stale" }
  /** What came was no frame, or in no order. */
  | { readonly kind: "malformed"; readonly message: string }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };

/** How a host side ended, for good. */
export type HostEnd =
  /** Said by this side, or by the session (`isRemote`), as a WebSocket's close. */
  | { readonly kind: "bye"; readonly code: number; readonly reason: string; readonly isRemote: boolean }
  /** `reset`: a new host side begins anew, as a new peer. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string; readonly retry: PeerRetry };

/** Who hears of a host side. Called with its state up to date: what it does in there takes effect at once. */
export interface HostListener {
  /** Welcomed, on each channel: messages flow. */
  opened?(): void;
  /** An output of the session: each once, in order. */
  message(message: string | Uint8Array, sequence: number): void;
  /** The handler of a message threw: nothing was changed. Said at most once; not where a home died meanwhile. */
  rejected?(sequence: number, code: string, message: string): void;
  /** Messages up to this one are in the log. */
  acknowledged?(sequence: number): void;
  /** It has no channel: `connected` with another one goes on where it stood. */
  lost(why: Lost): void;
  /** Nothing follows. */
  closed(end: HostEnd): void;
}

/** The log of its session that a host side holds (functions/sessions/sealed, HostLog). All synchronous. */
export interface HeldLog {
  /** The newest epoch that was promised, also by what is held; 0: nobody waits for it. */
  readonly promised: number;
  /** For a hello, where it ends: as bytes (functions/sessions/sealed, decodeSummary). */
  summary(): Uint8Array;
  /** Promises an epoch (HG1): all records, oldest first; null: a later one was promised. */
  promise(epoch: number): readonly Uint8Array[] | null;
  /** Takes a record of a home of that epoch. */
  take(epoch: number, record: Uint8Array): "held" | "stale" | "invalid";
  /** The peer is over, or begins anew: nothing is held any more. */
  drop(): void;
}

// ── Home side ──

/** What peers do to a session: events of turns. */
export type PeerInput = Extract<HandledEvent, { readonly kind: "attach" | "message" | "detach" }>;

/** What a peer is sent, as a commit gives it out: a message, or what sends the peer away. */
export type OutputToPeer = Output;

/** The log as hosts are sent it (functions/sessions/sealed, HostFeeds). */
export interface PeerFeeds {
  /** A host is there, on a new channel, with a log that ends so; null: it has none. */
  attach(host: string, tag: Uint8Array | null): void;
  /** Its channel is broken. */
  detach(host: string): void;
  /** It is no peer any more. */
  forget(host: string): void;
  /** Whoever opens the session would wait for it: it is on record, or may be. */
  isAwaited(host: string): boolean;
  /** Up to this entry it may be told; −1: nothing yet. */
  reach(host: string): number;
  /** What goes before, or with, the next frame to it. */
  next(host: string): readonly Uint8Array[];
  /** It holds so many records of this channel. */
  taken(host: string, records: number): void;
  /** The first record of its channel that it has not said to hold; 0: it holds all, or nothing is waited for. */
  untaken(host: string): number;
  /** So many records of its channel it was sent. */
  sent(host: string): number;
  /** It has been waited for long enough; `isOut`: it holds nothing before it may again, whatever it has taken. */
  late(host: string, isOut: boolean): void;
  /** It may hold the log again, once it has taken what it lacked. */
  again(host: string): void;
}

/** How an opening asks hosts for the log. */
export interface LogAsk {
  readonly epoch: number;
  readonly hosts: readonly string[];
  readonly withinMs: number;
  /** It goes on without those that do not come (docs/protocol/hosts.md, HO8), and without what they say of later epochs. */
  readonly isForced?: boolean;
}

/** What hosts gave back, opened; "superseded": one has promised a later epoch. */
export type LogAnswers = ReadonlyMap<string, HostCopy | null> | "superseded";

/** What the log says when a session has been opened. */
export interface LoggedPeers {
  readonly epoch: number;
  readonly peers: readonly OpenedPeer[];
  /** Not acknowledged, as far as is known: of each peer the last ones, up to `sent`. Others than peers' are left aside. */
  readonly outputs: readonly OutputToPeer[];
  /** Where hosts hold the log; left out: all of the log is at all owners. */
  readonly ahead?: {
    readonly feeds: PeerFeeds;
    /** All of the log that the session was opened with, and up to here. */
    readonly released: number;
    /** Hosts that were asked for it: who is not there by now is not waited for. */
    readonly asked: readonly string[];
  };
  /** Hosts that did not come back, and are no peers any more (docs/protocol/hosts.md, HO8). */
  readonly leftBehind?: readonly string[];
}

/** A commit that was appended, before it is released: what of it hosts that are ahead may be told. */
export interface Appended {
  /** Its last entry. */
  readonly entry: number;
  /** Others than peers' are left aside. */
  readonly outputs: readonly OutputToPeer[];
}

/** A commit that is at all owners, as far as it is about peers. Commits are told in their order. */
export interface Released {
  /** Events of peers that are done with it, in the order in which they were delivered. */
  readonly done: readonly {
    readonly event: PeerInput;
    /** Its handler threw, or took its isolate with it. A detach is one all the same. */
    readonly rejected: { readonly code: string; readonly message: string } | null;
  }[];
  /** Others than peers' are left aside; those that were told of as appended, too. */
  readonly outputs: readonly OutputToPeer[];
  /** Its last entry, where hosts hold the log. */
  readonly entry?: number;
}

/** What a home side needs of its site. */
export interface HomePorts {
  readonly clock: PeerClock;
  /** Hands an event to the session. `released` says when it is done; after `opened` those that are not come again. */
  deliver(event: PeerInput): void;
  /** Peers have these outputs: the session keeps them no longer (functions/sessions/turn, Acknowledged). */
  acknowledge(outputs: Readonly<Record<string, number>>): void;
  /** An id that no peer of this session ever had. */
  newId(): string;
  /**
   * What only this cluster can make of a peer's id and this session's name, 16 to 64 bytes each, the same at each site:
   * the first is given to peers, the others are known, too.
   */
  keysOf(id: string): readonly [Uint8Array, ...Uint8Array[]];
  /** Opens the log that a host gave back (functions/sessions/sealed); left out: hosts hold none. */
  openLog?(host: string, records: readonly Uint8Array[]): OpenedHostLog;
  /** A peer has seen a home of this epoch, newer than this one: look whether this home still is one. */
  outrun(epoch: number): void;
  /** Of home sides before this one, of the same session; left out: there was none. */
  readonly remembered?: Remembered;
  /** GRACE_MS, OUTBOX_BYTES_MAX and HANDED_MAX, where absent. */
  readonly graceMs?: number;
  readonly outboxBytesMax?: number;
  readonly handedMax?: number;
  readonly peersMax?: number;
}
