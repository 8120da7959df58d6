/**
 * Frames between a stateful session's home and its peers: one frame is one binary message of a channel
 * (docs/protocol/session-frames.md; as bytes: frame_bytes.ts).
 */
import type { Peer } from "../turn/event.ts";

/** Next step that a host can take after a refusal. */
export type PeerRetry = "fix" | "retry" | "reset";

/** Identity under which a host side comes back. */
export interface PeerIdentity {
  readonly id: string;
  /**
   * Key that the peer gets in its first welcome: a program that has it is this peer, one that knows only the id is not.
   */
  readonly key: Uint8Array;
}

/** First frame of every channel. */
export interface PeerHello {
  readonly kind: "hello";
  readonly peer: Peer["kind"];
  /** Identity of the peer; null where it was never welcomed. */
  readonly identity: PeerIdentity | null;
  /** Number from 1 to 2^53 − 1, drawn by this host side when it was made: nobody else knows it. */
  readonly instance: number;
  /**
   * Number of the channel among those of this host side, from 1 on: of two hellos the one with the higher number holds,
   * in whatever order they come. Where programs that went on with one storage are numbered, program n's begin beyond n
   * times PROGRAM_ATTEMPTS (limits.ts).
   */
  readonly attempt: number;
  /** Newest epoch that the host side has seen; 0 without an identity. */
  readonly epoch: number;
  /** Number of outputs that it has, all from the first on; 0 without an identity. */
  readonly received: number;
  /** Sequence of the oldest message that it still keeps, or of its next one; 1 without an identity. */
  readonly first: number;
  /** Summary of the log that it holds (functions/sessions/sealed, HostLogSummary); null where it can't hold the log. */
  readonly log: Uint8Array | null;
}

/** Data, either way: the sequence, and what its sender has received, follow from the frames before and the low bits. */
export interface Data {
  /** Low 5 bits of its sequence. */
  readonly sequence: number;
  /** Low 8 bits of the number that its sender has received. */
  readonly received: number;
  readonly payload: string | Uint8Array;
}

export interface MessageFrame extends Data {
  readonly kind: "message";
}

export interface OutputFrame extends Data {
  readonly kind: "output";
  /** Record of the session's log, sealed: all that this output follows from (`durability = "hosts"`). */
  readonly increment: Uint8Array | null;
}

/** Acknowledgement of what was received, all from the first on. */
export interface AckFrame {
  readonly kind: "ack";
  readonly received: number;
}

/** Frame that says that the session has ended, or knows that the peer has left. */
export interface Bye {
  readonly kind: "bye";
  /** Code as a WebSocket's close code: 1000 to 4999. */
  readonly code: number;
  readonly reason: string;
}

/** Frame with which a peer leaves. */
export interface Leave {
  readonly kind: "leave";
  /** Sequence of the peer's last message. */
  readonly last: number;
  /** Code as a WebSocket's close code: 1000 to 4999. */
  readonly code: number;
  readonly reason: string;
}

/** Frame with which the platform ends the channel, and maybe the peer. */
export interface Refused {
  readonly kind: "refused";
  readonly code: string;
  readonly message: string;
  /**
   * Next step that the host can take. `retry`: the peer is as before, another channel may do. Else this peer is over;
   * `reset`: begin as a new one.
   */
  readonly retry: PeerRetry;
}

/** Frames from a host to a home. */
export type ToHome =
  | PeerHello
  | MessageFrame
  | AckFrame
  | Leave
  | { readonly kind: "ping"; readonly number: number }
  /**
   * Answer to a fence: the host has promised the epoch, and holds these records, oldest first; null: it has promised a
   * later one.
   */
  | { readonly kind: "log"; readonly epoch: number; readonly records: readonly Uint8Array[] | null }
  /** Number of records of this channel that the host holds. */
  | { readonly kind: "taken"; readonly records: number };

/** Frames from a home to a host. */
export type ToHost =
  | {
    readonly kind: "welcome";
    readonly identity: PeerIdentity;
    readonly epoch: number;
    /** Number of messages of this peer that are in the log. */
    readonly received: number;
  }
  | OutputFrame
  | AckFrame
  | { readonly kind: "pong"; readonly number: number }
  /**
   * Request, before the welcome, of an opening for the log, and for the promise to take nothing of an earlier epoch.
   */
  | { readonly kind: "fence"; readonly epoch: number }
  /** Record of the log without an output. */
  | { readonly kind: "record"; readonly record: Uint8Array }
  /** Word that the handler of a message threw: it changed nothing. */
  | { readonly kind: "rejected"; readonly sequence: number; readonly code: string; readonly message: string }
  | Bye
  | Refused
  /** Last output: the session sends the peer away. */
  | { readonly kind: "dismissed"; readonly sequence: number; readonly code: number; readonly reason: string }
  /** End of this home: the host is to say hello again, best at that site. */
  | { readonly kind: "moved"; readonly site: string | null };
