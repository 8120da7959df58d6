/**
 * What a stateful session's home and its peers say to each other: one frame is one binary message of a channel
 * (docs/protocol/session-frames.md; as bytes: frame_bytes.ts).
 */
import type { Peer } from "../turn/event.ts";

/** By what a host can do next. */
export type PeerRetry = "fix" | "retry" | "reset";

/** Who a host side comes back as. */
export interface PeerIdentity {
  readonly id: string;
  /** Given to it in its first welcome: whoever has it is this peer, whoever knows the id only is not. */
  readonly key: Uint8Array;
}

/** The first frame of every channel. */
export interface PeerHello {
  readonly kind: "hello";
  readonly peer: Peer["kind"];
  /** Null: it was never welcomed. */
  readonly identity: PeerIdentity | null;
  /** 1 to 2^53 − 1, drawn by this host side when it was made: nobody else knows it. */
  readonly instance: number;
  /**
   * 1, 2, 3 … for each channel of this host side: of two hellos the later one holds, in whatever order they come. Where
   * programs that went on with one storage are numbered, program n's begin beyond n times PROGRAM_ATTEMPTS (limits.ts).
   */
  readonly attempt: number;
  /** The newest epoch that it has seen; 0 without an identity. */
  readonly epoch: number;
  /** Outputs that it has, all from the first to this one; 0 without an identity. */
  readonly received: number;
  /** The oldest message that it still keeps, or its next one; 1 without an identity. */
  readonly first: number;
  /** It can hold the log, and says what it has of it (functions/sessions/sealed, HostLogSummary). */
  readonly log: Uint8Array | null;
}

/** Data, either way: its sequence and what its sender has received follow from the frames before, and the low bits. */
export interface Data {
  /** The low 5 bits of its sequence. */
  readonly sequence: number;
  /** The low 8 bits of how many its sender has received. */
  readonly received: number;
  readonly payload: string | Uint8Array;
}

export interface MessageFrame extends Data {
  readonly kind: "message";
}

export interface OutputFrame extends Data {
  readonly kind: "output";
  /** A record of the session's log, sealed: all that this output follows from (`durability = "hosts"`). */
  readonly increment: Uint8Array | null;
}

/** It has received so many, all from the first to this one. */
export interface AckFrame {
  readonly kind: "ack";
  readonly received: number;
}

/** The session has ended, or knows that the peer has left. */
export interface Bye {
  readonly kind: "bye";
  /** As a WebSocket's close code: 1000 to 4999. */
  readonly code: number;
  readonly reason: string;
}

/** The peer leaves. */
export interface Leave {
  readonly kind: "leave";
  /** The sequence of its last message. */
  readonly last: number;
  /** As a WebSocket's close code: 1000 to 4999. */
  readonly code: number;
  readonly reason: string;
}

/** The platform ends the channel, and maybe the peer. */
export interface Refused {
  readonly kind: "refused";
  readonly code: string;
  readonly message: string;
  /** `retry`: the peer is what it was, another channel may do. Else this peer is over; `reset`: begin as a new one. */
  readonly retry: PeerRetry;
}

/** From a host to a home. */
export type ToHome =
  | PeerHello
  | MessageFrame
  | AckFrame
  | Leave
  | { readonly kind: "ping"; readonly number: number }
  /** It has promised an epoch, and holds these records, oldest first; null: it has promised a later one. */
  | { readonly kind: "log"; readonly epoch: number; readonly records: readonly Uint8Array[] | null }
  /** It holds so many records of this channel. */
  | { readonly kind: "taken"; readonly records: number };

/** From a home to a host. */
export type ToHost =
  | {
    readonly kind: "welcome";
    readonly identity: PeerIdentity;
    readonly epoch: number;
    /** Messages of this peer that are in the log. */
    readonly received: number;
  }
  | OutputFrame
  | AckFrame
  | { readonly kind: "pong"; readonly number: number }
  /** Before the welcome: whoever opens the session asks for the log, and that nothing of an earlier epoch is taken. */
  | { readonly kind: "fence"; readonly epoch: number }
  /** A record of the log without an output. */
  | { readonly kind: "record"; readonly record: Uint8Array }
  /** The handler of a message threw: nothing was changed by it. */
  | { readonly kind: "rejected"; readonly sequence: number; readonly code: string; readonly message: string }
  | Bye
  | Refused
  /** An output, the last one: the session sends the peer away. */
  | { readonly kind: "dismissed"; readonly sequence: number; readonly code: number; readonly reason: string }
  /** This home is over here: say hello again, best at that site. */
  | { readonly kind: "moved"; readonly site: string | null };
