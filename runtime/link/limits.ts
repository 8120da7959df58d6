/**
 * Every limit of a link, with its unit in its name and the reason for its value. All are configurable per hub;
 * relations between them are asserted when a hub starts.
 */
import { strict as assert } from "node:assert";

export interface LinkLimits {
  /**
   * Milliseconds from accepted or dialled to admitted. A handshake is two round trips; the slowest link we emulate has
   * 600 ms.
   */
  readonly handshakeMs: number;
  /**
   * Connections that have not proved membership yet. Past this one of them is closed, so that strangers who hold their
   * connections open cannot keep members out. Each has a socket and a few kilobytes; a thousand let five thousand
   * children a second in over a round trip of 100 ms, and they dial again after up to two.
   */
  readonly strangersMax: number;
  /** Bytes of a store message: one feed batch with values of 1 MiB, generously. Reassembly holds at most one. */
  readonly messageBytesMax: number;
  /**
   * Bytes of store messages received and not yet taken by their owner. One round trip of 20 ms at 1 Gbit/s is 2.5 MB.
   */
  readonly messageWindowBytes: number;
  /**
   * Bytes of the head of a request or an answer: headers of 32 KiB and an URL, encoded as JSON. Must fit one record.
   */
  readonly headBytesMax: number;
  /** Received and not yet read bytes of one body: 50 MB/s over a 20 ms round trip. */
  readonly bodyWindowBytes: number;
  /** Requests open at once on one connection, each direction, without ways. */
  readonly requestsMax: number;
  /**
   * Ways open at once on one connection, each direction: all WebSockets that a site takes (`limits.statefulPeers`,
   * 20,000 where nothing else is said) may lead to one other. A quiet one has a few kilobytes.
   */
  readonly waysMax: number;
  /** Bytes queued for one site above which `send` waits. */
  readonly roomBytes: number;
  /**
   * Bytes queued for one site above which its link is closed: its sender ignores `send`'s promise, or its receiver is
   * stuck.
   */
  readonly queueBytesMax: number;
  /** Bytes of store messages kept while a peer is being dialled; more are dropped. */
  readonly dialQueueBytesMax: number;
  /** Milliseconds of silence after which a side pings. */
  readonly pingMs: number;
  /** Milliseconds of silence after which a link is dead. */
  readonly deadMs: number;
  /** First and longest pause between attempts to reach the parent, in milliseconds. */
  readonly retryMsMin: number;
  readonly retryMsMax: number;
  /** Milliseconds without traffic (other than pings) after which a peer connection is closed with a goodbye. */
  readonly peerIdleMs: number;
}

export const DEFAULT_LINK_LIMITS: LinkLimits = {
  handshakeMs: 5_000,
  strangersMax: 1_024,
  messageBytesMax: 128 * 1024 * 1024,
  messageWindowBytes: 4 * 1024 * 1024,
  headBytesMax: 128 * 1024,
  bodyWindowBytes: 1024 * 1024,
  requestsMax: 1_024,
  waysMax: 32_768,
  roomBytes: 1024 * 1024,
  queueBytesMax: 256 * 1024 * 1024,
  dialQueueBytesMax: 8 * 1024 * 1024,
  pingMs: 1_000,
  deadMs: 5_000,
  retryMsMin: 50,
  retryMsMax: 2_000,
  peerIdleMs: 60_000,
};

/** Kinds of the requests that stay open for as long as somebody is attached (runtime/stateful, runtime/origins). */
export const WAY_KINDS: ReadonlySet<string> = new Set(["stateful-peer", "stateful-origin-way"]);

/** Bytes of a handshake message: it is below 500 with the longest ids; strangers get no more of our memory. */
export const HANDSHAKE_BYTES_MAX = 1_024;
/** Bytes of the ids of sites and incarnations, in UTF-8. */
export const SITE_ID_BYTES_MAX = 64;
/** Bytes of the shortest cluster secret: a shorter one could be guessed from one recorded handshake. */
export const SECRET_BYTES_MIN = 16;
/** Payload of a record past which no further frame is begun: the MAC's fixed 6 µs are 10 % of its cost here, and
 * an urgent frame waits for at most this much. */
export const RECORD_BYTES_SOFT = 64 * 1024;
/** Payload of a record that a receiver accepts: the soft limit, one part and one head on top. */
export const RECORD_BYTES_MAX = 256 * 1024;
/** Bytes of the parts in which long messages and bodies travel, so that others can come between. */
export const LINK_PART_BYTES_MAX = 32 * 1024;

/** Checks the relations between limits. @throws when they contradict each other, naming the pair. */
export function checkLimits(limits: LinkLimits): LinkLimits {
  assert(
    limits.deadMs >= 2 * limits.pingMs,
    "deadMs must be at least 2 × pingMs, or a live link is taken for dead",
  );
  assert(
    limits.headBytesMax + LINK_PART_BYTES_MAX + RECORD_BYTES_SOFT + 4096 <= RECORD_BYTES_MAX,
    `headBytesMax must be at most ${
      RECORD_BYTES_MAX - LINK_PART_BYTES_MAX - RECORD_BYTES_SOFT - 4096
    }, to fit a record`,
  );
  assert(
    limits.messageWindowBytes >= 2 * LINK_PART_BYTES_MAX,
    `messageWindowBytes must be at least ${2 * LINK_PART_BYTES_MAX}`,
  );
  assert(
    limits.bodyWindowBytes >= 2 * LINK_PART_BYTES_MAX,
    `bodyWindowBytes must be at least ${2 * LINK_PART_BYTES_MAX}`,
  );
  assert(
    limits.queueBytesMax >= limits.messageBytesMax,
    "queueBytesMax must hold a message of messageBytesMax",
  );
  assert(
    limits.retryMsMin > 0 && limits.retryMsMax >= limits.retryMsMin,
    "retryMsMax must be at least retryMsMin > 0",
  );
  return limits;
}
