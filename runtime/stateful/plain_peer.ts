/**
 * Host side of a plain WebSocket, in the gateway that it came to: it keeps what the client sent until that is in the
 * session's log, and goes on with the next home when one dies (functions/sessions/attach).
 *
 * Life: `attach` (way, hello, welcome; only then the client's handshake is answered) → messages both ways, over
 * whatever ways there are → closed by the client, the session, or because no home is reached for too long.
 *
 * PP1  As long as this site lives, each message of the client is in the log once and in order, and each output reaches
 *      the client's socket once and in order. With this site the socket ends: what was on its way then is not known to
 *      the client (a WebSocket has no acknowledgements), and its session sees it go when its grace is over.
 * PP2  What waits is bounded, either way: a client that sends faster than the log takes is not read for a while, one that
 *      reads too slowly is closed.
 */
import {
  type HeldLog,
  HOLDING_MS,
  type HostEnd,
  HostSide,
  type Lost,
  MESSAGE_BYTES_MAX,
  type PeerClock,
} from "../../functions/sessions/attach/mod.ts";
import type { AppQueues, QueueHold } from "../isolate/app_queues.ts";
import { cutReason, type MessageSocket, type SocketEvent, SocketQueue } from "../gateway/message_socket.ts";
import { isProblemCode, Problem } from "../../functions/vocabulary/problem.ts";
import { pauseBy } from "../../functions/sessions/serve/clock.ts";
import { SYSTEM_CLOCK } from "./clock.ts";
import { channelOf, feed, type FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import { WayRefused } from "../../functions/sessions/serve/peer_ways.ts";

/** Site, as the host side of a plain WebSocket needs it. */
export interface PlainPeerPorts {
  /** Opens a way to the session's home. @throws WayRefused */
  readonly open: () => Promise<FrameWay>;
  /** Number of the host side: 1 to 2^53 − 1. */
  readonly instance: number;
  /** Log of the session, where it can be held: in a program that outlives a home, so not in a gateway. */
  readonly log?: HeldLog;
  readonly count: (what: "resumed" | "lost" | "slow") => void;
  /** Queues of the app at this site. */
  readonly queues?: AppQueues | undefined;
  /** Clock; left out: the system's. */
  readonly clock?: PeerClock | undefined;
  /** Reports a fault of this end, which is closed by it. */
  readonly failed: (error: unknown) => void;
}

/** Bytes of messages that are not in the log: beyond, the client is not read. */
const WAITING_BYTES_MAX = 1024 * 1024;
const WAITING_MAX = 2_048;
/** Bytes of outputs that the client does not take: beyond, it is closed. */
const OUTPUTS_BYTES_MAX = 4 * 1024 * 1024;
const OUTPUTS_MAX = 16_384;
/** Milliseconds within which a home that was lost is taken over, where that is possible. */
const ATTACH_MS_MAX = 15_000;
/** Milliseconds after which a word that nobody can take the session over is believed. */
const UNREACHABLE_MS_MAX = 3_000;
/**
 * Milliseconds without a home (a site that restarts and holds the only log) after which a client is told to come again.
 */
const RESUME_MS_MAX = 60_000;
/** Milliseconds for which the host side of a client that has gone tries to say so to its session. */
const BYE_MS_MAX = 5_000;
const RETRY_MS = 100;
const RETRY_MS_MAX = 1_000;
/** Codes of refusals that no later attempt changes by itself. */
const FOR_GOOD: ReadonlySet<string> = new Set([
  "app_unknown",
  "limit_stateful",
  "not_available",
  "stateful_parked",
]);

/** Codes of refusals that pass: a client that wants to attach waits for it. */
const PASSING: ReadonlySet<string> = new Set(["superseded_home", "stateful_unreachable", "draining"]);

/** Close codes (RFC 6455, 7.4.1; the registry). */
const CLOSE = { tooSlow: 1008, tooBig: 1009, failed: 1011, restarted: 1012, later: 1013 } as const;

/** Host side of a plain WebSocket (see the file's header). */
export class PlainPeer implements MessageSocket {
  readonly #ports: PlainPeerPorts;
  readonly #clock: PeerClock;
  readonly #host: HostSide;
  readonly #queue = new SocketQueue();
  readonly #attached = Promise.withResolvers<void>();
  readonly #hold: QueueHold | undefined;
  #outputBytes = 0;
  #outputs = 0;
  #room: PromiseWithResolvers<void> | null = null;
  #lostMs: number | null;
  #retryMs = 0;
  #isAttached = false;
  #isOver = false;
  #isLooking = false;
  #closingMs: number | null = null;

  private constructor(ports: PlainPeerPorts) {
    this.#ports = ports;
    this.#clock = ports.clock ?? SYSTEM_CLOCK;
    this.#lostMs = this.#clock.nowMs();
    this.#hold = ports.queues?.hold("socket of a session", () => this.#slow());
    this.#host = new HostSide({
      kind: "client",
      instance: ports.instance,
      clock: this.#clock,
      ...ports.log === undefined ? {} : { log: ports.log },
      listener: {
        opened: () => this.#opened(),
        message: (message) => this.#output(message as string | Uint8Array<ArrayBuffer>),
        acknowledged: () => this.#drained(),
        lost: (why) => this.#lost(why),
        closed: (end) => this.#closed(end),
      },
    });
  }

  /** Attaches a client. @throws Problem */
  static async attach(ports: PlainPeerPorts): Promise<PlainPeer> {
    const peer = new PlainPeer(ports);
    void peer.#look();
    await peer.#attached.promise; // attacher.ts A1
    return peer;
  }

  // ── The client's end ──

  async next(): Promise<SocketEvent> {
    const event = await this.#queue.next();
    if (event.kind === "message") {
      this.#outputs--;
      this.#outputBytes -= event.data.length;
      this.#hold?.add(-event.data.length);
    }
    return event;
  }

  async send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#isOver) return;
    const bytes = typeof data === "string" && data.length * 3 > MESSAGE_BYTES_MAX
      ? new TextEncoder().encode(data).length
      : data.length;
    if (bytes > MESSAGE_BYTES_MAX) {
      return this.#leave(CLOSE.tooBig, `a message has at most ${MESSAGE_BYTES_MAX} bytes`);
    }
    this.#host.send(data);
    while (this.#isFull && !this.#isOver) { // PP2
      await (this.#room ??= Promise.withResolvers()).promise;
    }
  }

  get #isFull(): boolean {
    const { bufferedBytes, sent, acknowledged } = this.#host;
    return bufferedBytes > WAITING_BYTES_MAX || sent - acknowledged > WAITING_MAX;
  }

  /** Leaves the session: the client has gone, or the gateway closes. */
  close(code: number, reason: string): void {
    this.#queue.push({ kind: "close", code, reason });
    if (this.#closingMs !== null) return;
    this.#closingMs = this.#clock.nowMs();
    this.#host.close(code, reason);
  }

  // ── The session's end ──

  #opened(): void {
    if (this.#isAttached) this.#ports.count("resumed");
    this.#isAttached = true;
    this.#lostMs = null;
    this.#retryMs = 0;
    this.#attached.resolve();
    this.#drained();
  }

  #output(data: string | Uint8Array<ArrayBuffer>): void {
    this.#queue.push({ kind: "message", data });
    this.#outputs++;
    this.#outputBytes += data.length;
    this.#hold?.add(data.length);
    if (this.#outputBytes > OUTPUTS_BYTES_MAX || this.#outputs > OUTPUTS_MAX) this.#slow();
  }

  #slow(): void {
    this.#ports.count("slow");
    this.#leave(CLOSE.tooSlow, "what the session sends is not read");
  }

  #drained(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  #lost(why: Lost): void {
    if (this.#isOver) return;
    this.#lostMs ??= this.#clock.nowMs();
    if (why.kind === "malformed") this.#retryMs ||= RETRY_MS;
    // A way that is there leads to a session that waits for clients which hold its log, or to another way.
    const [code, message] = why.kind === "refused"
      ? [why.code, why.message]
      : ["superseded_home", `its way was lost: ${why.kind}`];
    if (this.#isLate(code)) return this.#giveUp(code, message); // PP1
    void this.#look();
  }

  /** Looks for a home until there is one, or it has taken too long. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (!this.#isOver && this.#host.stage === "apart") {
      if (this.#retryMs > 0) await pauseBy(this.#clock, this.#retryMs); // PP1
      this.#retryMs = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS, this.#retryMs * 2));
      try {
        const way = await this.#ports.open();
        if (this.#isOver) way.close();
        else void feed(way, this.#host.connected(channelOf(way)), (error) => this.#failed(error));
      } catch (error) {
        if (this.#refused(error)) break;
      }
    }
    this.#isLooking = false;
  }

  /** Takes a refusal of a way. Reports whether the session is given up. */
  #refused(error: unknown): boolean {
    const code = error instanceof WayRefused ? error.code : "internal";
    const message = error instanceof Error ? error.message : String(error);
    const mayRetry = this.#isAttached ? this.#isHolding || !FOR_GOOD.has(code) : PASSING.has(code);
    if (mayRetry && !this.#isLate(code)) return false;
    this.#giveUp(code, message);
    return true;
  }

  #isLate(code: string): boolean {
    const nowMs = this.#clock.nowMs();
    if (this.#isHolding) return nowMs - (this.#lostMs ?? nowMs) > HOLDING_MS;
    const firstMs = code === "stateful_unreachable" ? UNREACHABLE_MS_MAX : ATTACH_MS_MAX;
    const maxMs = this.#isAttached ? RESUME_MS_MAX : firstMs;
    return nowMs - (this.#lostMs ?? nowMs) > maxMs ||
      (this.#closingMs !== null && nowMs - this.#closingMs > BYE_MS_MAX);
  }

  /** True where this end holds a log, and may be the host that is waited for, also when its client has gone. */
  get #isHolding(): boolean {
    return (this.#ports.log?.promised ?? 0) > 0;
  }

  #giveUp(code: string, message: string): void {
    const known = code === "superseded_home" ? "stateful_unreachable" : code;
    this.#ports.count("lost");
    this.#host.abandon();
    this.#end(CLOSE.later, known, new Problem(isProblemCode(known) ? known : "internal", message));
  }

  #failed(error: unknown): void {
    this.#ports.failed(error);
    this.#ports.count("lost");
    this.#end(CLOSE.failed, "internal", new Problem("internal", "the gateway's end of it failed"));
    this.#host.abandon();
  }

  #closed(end: HostEnd): void {
    if (end.kind === "bye") return this.#end(end.code, end.reason, null);
    const code = isProblemCode(end.code) ? end.code : end.retry === "reset" ? "superseded" : "app_error";
    const close = end.code === "limit_slow"
      ? CLOSE.tooSlow
      : end.retry === "reset"
      ? CLOSE.restarted
      : CLOSE.failed;
    this.#end(close, end.code, new Problem(code, `the session took no client: ${end.message}`));
  }

  /** Sends the client away, and says so to the session. */
  #leave(code: number, reason: string): void {
    this.close(code, reason);
    this.#drained();
  }

  #end(code: number, reason: string, problem: Problem | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#attached.promise.catch(() => {});
    this.#attached.reject(problem ?? new Problem("superseded", `the session closed: ${reason}`));
    this.#queue.push({ kind: "close", code, reason: cutReason(reason) });
    this.#hold?.end();
    this.#drained();
  }
}
