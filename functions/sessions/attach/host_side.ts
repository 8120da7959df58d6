/**
 * Host side of a peer: keeps what was sent to a stateful session until that is in its log, gives out what the session
 * sends once and in order, and goes on over whatever channel it is given next.
 *
 *   apart ─ connected ─▶ greeting ─ welcome ─▶ open          `lost`: apart again, from any stage
 *                                                           `closed`: over, from any stage
 *
 * HS1  A message is kept until the home says that it is in the log; on every channel those that are not are sent again,
 *      in order, from where the welcome says.
 * HS2  An output is given out once, in order: the hello says which one is to come next, and any other breaks the
 *      channel.
 * HS3  One channel at a time. Nothing that comes on another is heard, and no home of an older epoch than the newest
 *      that was seen.
 * HS4  An output is given out with all that it follows from: its record is held first. Between a fence and the welcome
 *      after it nothing else is heard, and no home of an earlier epoch than was promised.
 * HS5  The log that is held is dropped when the peer is over, and for nothing else: that the session can't be opened at
 *      a site, or as things are, may be for want of just that log.
 * HS6  At most WINDOW_MESSAGES and PEER_WINDOW_BYTES are on their way; the rest waits here, bounded.
 */
import { CodecError } from "../../../store/model/codec.ts";
import { AppError } from "../../vocabulary/errors.ts";
import type { Peer } from "../turn/event.ts";
import type { Bye, OutputFrame, PeerIdentity, Refused, ToHost } from "./frame.ts";
import { countFrom, cut, decodeToHost, encodeKept, encodeToHome, isSequence, tag } from "./frame_bytes.ts";
import { HomeWatch } from "./home_watch.ts";
import * as limits from "./limits.ts";
import {
  type Channel,
  type ChannelReader,
  CLOSE,
  type HeldLog,
  type HostEnd,
  type HostListener,
  type Lost,
  type PeerClock,
} from "./ports.ts";
import { SentMessages } from "./sent_messages.ts";

/** State from which a host side can be made again, at the program's next start. */
export interface HostState {
  readonly identity: PeerIdentity;
  readonly epoch: number;
  readonly received: number;
  /** Sequence of the first of `messages`: those before are in the log. */
  readonly first: number;
  /** Messages, each as 0 and text in UTF-8, or 1 and bytes. */
  readonly messages: readonly Uint8Array[];
}

export interface HostOptions {
  readonly kind: Peer["kind"];
  /**
   * Number from 1 to 2^53 − 1, drawn for this host side: a program that knows it may speak for the peer until it has
   * its key.
   */
  readonly instance: number;
  readonly clock: PeerClock;
  readonly listener: HostListener;
  readonly saved?: HostState | undefined;
  /**
   * Number of programs that have begun with this saved state, this one among them; 0 (default): nobody counts. A home
   * lets none take the peer from a later one that lives. 1 to PROGRAMS_MAX.
   */
  readonly program?: number;
  readonly bufferBytesMax?: number;
  /**
   * Milliseconds after which a home that says nothing, though it is asked, is lost; 0 (default): the reader of the
   * channel knows.
   */
  readonly silentMs?: number;
  /**
   * Milliseconds without an acknowledgement of a message after which the home is lost: another site may do better.
   * Twice as long where that one did not, and so on. 0 (default): never.
   */
  readonly stalledMs?: number;
  /** Log of the session, where it can be held (`durability = "hosts"`). */
  readonly log?: HeldLog;
}

/** Codes with which, under `fix`, the peer is refused. With others its session can't be reached as things are. */
const OF_PEERS: ReadonlySet<string> = new Set([
  "message_malformed",
  "peer_forged",
  "superseded",
  "limit_window",
]);

type Stage = "apart" | "greeting" | "open" | "closed";

/** Host side of a peer (see the file's header). */
export class HostSide {
  readonly #options: HostOptions;
  readonly #sent: SentMessages;
  #identity: PeerIdentity | null;
  #epoch: number;
  #received: number;
  #stage: Stage = "apart";
  #channel: Channel | null = null;
  #attempt: number;
  /** Number of outputs of which the home was told on this channel. */
  #told = 0;
  /** Number of messages of which the home said on this channel that they are in the log. */
  #heard = 0;
  #closing: { readonly code: number; readonly reason: string } | null = null;
  #hasTakenLeave = false;
  #cancelAck: (() => void) | null = null;
  /** Number of records of this channel that are held. */
  #records = 0;
  #recordsTold = 0;
  #cancelTaken: (() => void) | null = null;
  readonly #watch: HomeWatch;

  constructor(options: HostOptions) {
    const { saved, program = 0 } = options;
    this.#options = options;
    this.#attempt = program * limits.PROGRAM_ATTEMPTS;
    this.#identity = saved?.identity ?? null;
    this.#epoch = saved?.epoch ?? 0;
    this.#received = saved?.received ?? 0;
    this.#sent = new SentMessages(saved?.first ?? 1, saved?.messages ?? []);
    const { clock, silentMs = 0, stalledMs = 0 } = options;
    this.#watch = new HomeWatch({
      ...{ clock, silentMs, stalledMs },
      ping: (number) => this.#channel?.send(encodeToHome({ kind: "ping", number })),
      onTheirWay: () => this.#sent.onTheirWay,
      lost: (why) => this.#lose(why),
    });
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** Identity of the peer; null until the first welcome. */
  get identity(): PeerIdentity | null {
    return this.#identity;
  }

  /** Newest epoch that was seen. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Number of outputs that were given out, over all channels. */
  get received(): number {
    return this.#received;
  }

  /** Sequence of the last message that was sent. */
  get sent(): number {
    return this.#sent.last;
  }
  get acknowledged(): number {
    return this.#sent.acknowledged;
  }

  /** Bytes of messages that are not in the log, as far as is known here. */
  get bufferedBytes(): number {
    return this.#sent.bytes;
  }

  /** Round trip of the last ping (`silentMs`); null before there was one. */
  get roundTripMs(): number | null {
    return this.#watch.roundTripMs;
  }

  /** Returns the state that a later host side can go on from; null before the first welcome. */
  save(): HostState | null {
    if (this.#identity === null) return null;
    return {
      identity: this.#identity,
      epoch: this.#epoch,
      received: this.#received,
      first: this.#sent.acknowledged + 1,
      messages: this.#sent.kept(),
    };
  }

  // ── The app ──

  /**
   * Sends a message, now or when there is a channel. Returns its sequence; null where the peer is closed, or closing:
   * the message goes nowhere, as with a WebSocket.
   *
   * @throws AppError `limit_value` for a message that is too long, `limit_messages` where too much waits.
   */
  send(message: string | Uint8Array): number | null {
    if (this.#stage === "closed" || this.#closing !== null) return null;
    const tagged = tag(message);
    if (tagged.length - 1 > limits.MESSAGE_BYTES_MAX) {
      throw new AppError(
        "limit_value",
        `a message has ${
          tagged.length - 1
        } bytes: up to ${limits.MESSAGE_BYTES_MAX} go to a stateful session`,
      );
    }
    const max = this.#options.bufferBytesMax ?? limits.BUFFER_BYTES_MAX;
    if (this.#sent.bytes > 0 && this.#sent.bytes + tagged.length > max) {
      throw new AppError(
        "limit_messages",
        `${this.#sent.bytes} bytes of messages wait to be acknowledged, and up to ${max} are kept`,
      );
    }
    this.#sent.push(tagged);
    this.#pump();
    return this.#sent.last;
  }

  /** Leaves: what was sent before goes out first. `closed` says when the session knows. */
  close(code = 1000, reason = ""): void {
    if (this.#stage === "closed" || this.#closing !== null) return;
    this.#closing = { code, reason: cut(reason, limits.REASON_BYTES_MAX) };
    if (this.#identity === null && this.#stage === "apart") this.#end({ ...this.#bye, isRemote: false });
    else this.#pump();
  }

  /** Goes without a word: the session finds out when its grace is over. Nothing is told to the listener. */
  abandon(): void {
    this.#apart(CLOSE.done);
    this.#stage = "closed";
    this.#sent.clear();
  }

  // ── Channels ──

  /** Goes on over a channel; the one before, if any, is closed (HS3). */
  connected(channel: Channel): ChannelReader {
    if (this.#stage === "closed") {
      channel.close(CLOSE.done, "");
      return { frame: () => {}, broken: () => {} };
    }
    this.#apart(CLOSE.done);
    this.#channel = channel;
    this.#stage = "greeting";
    this.#attempt++;
    const { kind, instance } = this.#options;
    this.#told = this.#received;
    this.#records = this.#recordsTold = 0;
    channel.send(encodeToHome({
      kind: "hello",
      peer: kind,
      identity: this.#identity,
      instance,
      attempt: this.#attempt,
      epoch: this.#epoch,
      received: this.#received,
      first: this.#sent.acknowledged + 1,
      log: this.#options.log?.summary() ?? null,
    }));
    if (this.#channel === channel) this.#watch.greets();
    return {
      frame: (bytes) => this.#channel === channel ? this.#frame(bytes) : undefined,
      broken: () => this.#channel === channel ? this.#lose({ kind: "broken" }) : undefined,
    };
  }

  #frame(bytes: Uint8Array): void {
    this.#watch.heard();
    let frame: ToHost;
    try {
      frame = decodeToHost(bytes);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return this.#malformed(error.message);
    }
    switch (frame.kind) {
      case "bye":
        return this.#saidBye(frame);
      case "refused":
        return this.#refused(frame);
      case "moved":
        return this.#lose({ kind: "moved", site: frame.site });
      case "pong":
        return this.#watch.pong(frame.number);
      case "welcome":
        return this.#stage === "greeting" ? this.#welcomed(frame) : this.#malformed("a second welcome came");
      case "fence":
        return this.#fenced(frame.epoch);
    }
    if (this.#stage !== "open") return this.#malformed(`${frame.kind} came before the welcome`);
    switch (frame.kind) {
      case "output":
        return this.#output(frame);
      case "record":
        return void this.#held(frame.record);
      case "ack":
        return this.#acknowledged(frame.received);
      case "dismissed":
        return this.#dismissed(frame);
      case "rejected":
        if (frame.sequence > this.#sent.taken) return this.#malformed("what was never sent was rejected");
        return this.#options.listener.rejected?.(frame.sequence, frame.code, frame.message);
    }
  }

  #welcomed({ identity, epoch, received }: Extract<ToHost, { readonly kind: "welcome" }>): void {
    if (epoch < this.#epoch) return this.#lose({ kind: "stale" });
    if (this.#identity !== null && this.#identity.id !== identity.id) {
      return this.#malformed(`${this.#identity.id} was welcomed as ${identity.id}`);
    }
    if (received < this.#sent.acknowledged || received > this.#sent.last) {
      const [least, most] = [this.#sent.acknowledged, this.#sent.last];
      const message = `the log has ${received} messages of this peer: ${least} to ${most} can be there`;
      const code = received < least ? "peer_ahead" : "peer_behind";
      return this.#end({ kind: "refused", code, message, retry: "reset" });
    }
    const { listener } = this.#options;
    this.#identity = identity;
    this.#epoch = epoch;
    this.#stage = "open";
    this.#hasTakenLeave = false;
    this.#watch.begins();
    this.#heard = received;
    const before = this.#sent.acknowledged;
    if (received > before) this.#watch.progress();
    this.#sent.begin(received);
    const channel = this.#channel;
    if (received > before) listener.acknowledged?.(received);
    if (this.#channel === channel) listener.opened?.();
    if (this.#channel === channel) this.#pump();
  }

  /** Answers a fence with the log (HS4). */
  #fenced(epoch: number): void {
    const { log } = this.#options;
    if (log === undefined || this.#stage !== "greeting") {
      return this.#malformed("a log is asked for that is not held");
    }
    this.#channel?.send(encodeToHome({ kind: "log", epoch, records: log.promise(epoch) }));
    this.#epoch = Math.max(this.#epoch, epoch);
  }

  /** Reports whether a record is held; where it is not, the channel is lost (HS4). */
  #held(record: Uint8Array): boolean {
    const taken = this.#options.log?.take(this.#epoch, record) ?? "invalid"; // host_log.ts HG2
    if (taken === "held") {
      this.#records++;
      this.#cancelTaken ??= this.#options.clock.after(limits.TAKEN_MS, () => this.#tellTaken());
      return true;
    }
    if (taken === "stale") this.#lose({ kind: "stale" });
    else this.#malformed("a record of the log does not go on from the one before it");
    return false;
  }

  #tellTaken(): void {
    this.#cancelTaken?.();
    this.#cancelTaken = null;
    if (this.#stage !== "open" || this.#recordsTold === this.#records) return;
    this.#recordsTold = this.#records;
    this.#channel?.send(encodeToHome({ kind: "taken", records: this.#records }));
  }

  /** Gives out an output (HS2). All is counted before the listener is told: what it calls from there finds it so. */
  #output(frame: OutputFrame): void {
    if (!isSequence(this.#received + 1, frame.sequence)) {
      return this.#malformed(`output ${this.#received + 1} was to come, and another one did`);
    }
    const count = countFrom(this.#heard, frame.received);
    if (!this.#mayBe(count)) return;
    if (frame.increment !== null && !this.#held(frame.increment)) return; // host_log.ts HG2
    const { listener } = this.#options;
    const sequence = ++this.#received;
    const acknowledged = this.#takeCount(count);
    listener.message(frame.payload, sequence);
    if (acknowledged) listener.acknowledged?.(count);
    this.#pump();
    this.#tellSoon();
  }

  /**
   * Tells the home soon what was received. After the listener has it: what it keeps, it keeps before the home is told.
   */
  #tellSoon(): void {
    if (this.#stage !== "open") return;
    if (this.#received - this.#told >= limits.ACK_EVERY) return this.#tell();
    if (this.#received > this.#told) {
      this.#cancelAck ??= this.#options.clock.after(limits.ACK_MS, () => this.#tell());
    }
  }

  #acknowledged(count: number): void {
    if (!this.#mayBe(count) || !this.#takeCount(count)) return;
    this.#options.listener.acknowledged?.(count);
    this.#pump();
  }

  #mayBe(count: number): boolean {
    if (count >= this.#heard && count <= this.#sent.taken) return true;
    this.#malformed(`messages up to ${count} were acknowledged, and ${this.#sent.taken} were sent`);
    return false;
  }

  /** Takes the number of messages that are in the log (HS1). Returns whether that is more than was known. */
  #takeCount(count: number): boolean {
    if (count === this.#heard) return false;
    this.#heard = count;
    this.#sent.acknowledge(count);
    this.#watch.progress();
    return true;
  }

  // ── Sending ──

  /** Sends what may go (HS6). */
  #pump(): void {
    const channel = this.#channel;
    if (this.#stage !== "open" || channel === null) return;
    for (;;) {
      if (this.#sent.onTheirWay === 0) this.#watch.waits();
      const next = this.#sent.take();
      if (next === null) break;
      if (this.#received - this.#told > 0xff) this.#tell();
      this.#isTold();
      channel.send(encodeKept({ ...next, received: this.#received }));
      if (this.#channel !== channel) return;
    }
    if (this.#closing === null || this.#hasTakenLeave || !this.#sent.isAllOnTheWay) return;
    this.#hasTakenLeave = true;
    const { code, reason } = this.#closing;
    channel.send(encodeToHome({ kind: "leave", last: this.#sent.last, code, reason }));
  }

  get #bye(): Bye {
    return { kind: "bye", ...this.#closing ?? { code: 1000, reason: "" } };
  }

  #tell(): void {
    if (this.#stage !== "open" || this.#told === this.#received) return this.#isTold();
    this.#isTold();
    this.#channel?.send(encodeToHome({ kind: "ack", received: this.#received }));
  }

  #isTold(): void {
    this.#told = this.#received;
    this.#cancelAck?.();
    this.#cancelAck = null;
  }

  // ── Ends ──

  #malformed(message: string): void {
    this.#lose({ kind: "malformed", message });
  }

  #refused({ code, message, retry }: Refused): void {
    const isAwaited = retry === "fix" && !OF_PEERS.has(code) && (this.#options.log?.promised ?? 0) > 0; // HS5
    if (retry === "retry" || isAwaited) return this.#lose({ kind: "refused", code, message });
    // The peer was detached, as it wanted to be.
    const isLeft = this.#closing !== null && code === "peer_unknown" &&
      this.#sent.last === this.#sent.acknowledged;
    this.#end(isLeft ? { ...this.#bye, isRemote: false } : { kind: "refused", code, message, retry });
  }

  #saidBye(bye: Bye): void {
    this.#end(this.#closing === null ? { ...bye, isRemote: true } : { ...this.#bye, isRemote: false });
  }

  /** Ends with the last output, a dismissal: the home lets it go when it is acknowledged. */
  #dismissed({ sequence, code, reason }: Extract<ToHost, { readonly kind: "dismissed" }>): void {
    if (sequence !== this.#received + 1) return this.#malformed(`output ${sequence} is not the next`);
    this.#received++;
    this.#tell();
    this.#end({ kind: "bye", code, reason, isRemote: true });
  }

  #lose(why: Lost): void {
    this.#apart(CLOSE.broken);
    this.#options.listener.lost(why);
  }

  #end(end: HostEnd): void {
    this.#apart(CLOSE.done);
    this.#stage = "closed";
    this.#options.log?.drop();
    this.#options.listener.closed(end);
  }

  #apart(code: number): void {
    const channel = this.#channel;
    this.#channel = null;
    if (this.#stage !== "closed") this.#stage = "apart";
    this.#watch.off();
    this.#isTold();
    this.#cancelTaken?.();
    this.#cancelTaken = null;
    channel?.close(code, "");
  }
}
