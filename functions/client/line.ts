/**
 * The line: one WebSocket of an app, over as many connections as it takes.
 *
 *   opening ─ a stateful session's ─▶ session: goes on over the next connection when one breaks
 *           ─ the app's own ─▶ plain: ends with its connection
 *   `closed` from any stage
 *
 * L1  The server says which kind a socket is, on the first connection that it takes: it answers the subprotocol of
 *     sessions, or that there is none, or the app's own.
 * L2  A session goes on exactly: its host side (functions/sessions/attach) sends messages again that are not in the
 *     log, and gives out each output once.
 * L3  Before the first connection is taken, a few refusals end the attempt and are told: a client that may not connect
 *     is not kept waiting, nor one that is new to a session that can't be opened now. Afterwards connections are tried
 *     for `resumeMs`.
 * L4  The host side holds the log of a session with `durability: "hosts"`: in memory, and beside the head where that is
 *     kept.
 * L5  A line moves with its client: the next connection is open before the one before it is closed.
 * L6  The reason for which there is no connection is told when a site gives it, once for each reason. A client that
 *     holds the log may be the one that its session waits for: it accepts refusals for as long as they go on, and does
 *     not drop the log. Where it finds no site for `resumeMs`, or is closed without one, what it has kept is for the
 *     next socket.
 */
import { tag } from "../sessions/attach/frame_bytes.ts";
import {
  type Channel,
  type ChannelReader,
  type HostEnd,
  HostSide,
  type Lost,
  SUBPROTOCOL,
} from "../sessions/attach/mod.ts";
import { HostLog } from "../sessions/sealed/host_log.ts";
import type { ClientLog } from "./kept_log.ts";
import type { KeptPeer } from "./kept_peer.ts";
import * as limits from "./limits.ts";
import type { ClientHost, Socket } from "./ports.ts";
import type { KnownSite } from "./site_choice.ts";

/** Subprotocol that is answered where the app has a WebSocket of its own, without a subprotocol (docs/http.md). */
const PLAIN_PROTOCOL = "sojourn.plain.1";

/** Parts that a line works with. */
export interface LineParts {
  readonly host: ClientHost;
  /** Path and query, as the app sees them. */
  readonly path: string;
  /** Subprotocols of the app's. */
  readonly protocols: readonly string[];
  readonly kept: KeptPeer | null;
  readonly resumeMs: number;
  readonly listener: LineListener;
  readonly site: (without: ReadonlySet<string>) => KnownSite;
  /** Returns the tokens that a socket presents at a site. @throws where the site gives none. */
  readonly tokens: (site: KnownSite) => Promise<readonly string[]>;
  /**
   * Asks a living site that refused a socket whether it takes the session's tokens, and begins a session anew where it
   * does not.
   */
  readonly renew: (site: KnownSite) => Promise<void>;
  /** Reports whether a site lives, and notes that. */
  readonly isAlive: (site: KnownSite) => Promise<boolean>;
}

/** Listener of a line: the WebSocket that programs have. */
export interface LineListener {
  /** Reports that the line is open. @param protocol the app's, or "". */
  opened(protocol: string): void;
  message(data: string | Uint8Array): void;
  /** Reports that a handler threw: its message has changed nothing. */
  rejected(problem: { readonly code: string; readonly message: string }): void;
  /** Reports that the line has no connection. (`back`: that it has one again.) */
  away(): void;
  back(): void;
  /** Reports why there is no connection, where a site says it (L6). Connections are tried on. */
  refused(problem: { readonly code: string; readonly message: string }): void;
  closed(code: number, reason: string, isClean: boolean): void;
}

type Stage = "opening" | "session" | "plain" | "closed";
const ABNORMAL = 1006;
/** Code with which a plain WebSocket is closed where its session can't be reached: it may come again. */
const LATER = 1013;
/** Close code of the platform's, where no reason of the app's fits. */
const REFUSED = 4000;

/** WebSocket of an app, over as many connections as it takes. */
export class Line {
  readonly #parts: LineParts;
  #stage: Stage = "opening";
  #side: HostSide;
  #kept: KeptPeer | null;
  /** Log of the session, where this client is one of its hosts (L4). */
  #log: HostLog | ClientLog | null = null;
  /** Refusal that was told last (L6). */
  #refusal: { readonly code: string; readonly message: string } | null = null;
  #cancelRefused: (() => void) | null = null;
  #isReset = false;
  #plain: Socket | null = null;
  /** Number of the connection that is being made; another one takes its place. */
  #attempt = 0;
  #failures = 0;
  #refusals = 0;
  readonly #tried = new Set<string>();
  #at: KnownSite | null = null;
  #awayMs: number | null = null;
  #cancel = () => {};
  #cancelClose = () => {};

  constructor(parts: LineParts) {
    this.#parts = parts;
    this.#kept = parts.kept;
    this.#side = this.#newSide();
    void this.#connect();
  }

  get isClosed(): boolean {
    return this.#stage === "closed";
  }

  get bufferedBytes(): number {
    return this.#plain?.bufferedAmount ?? this.#side.bufferedBytes;
  }

  /** Sends a message. @throws AppError `limit_value`, `limit_messages` */
  send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#stage === "plain") return this.#plain?.send(data);
    if (this.#stage !== "session") return;
    const sequence = this.#side.sent + 1;
    this.#kept?.message(sequence, tag(data)); // before it can leave (kept_peer.ts, K1)
    let isTaken = false;
    try {
      isTaken = this.#side.send(data) !== null;
    } finally {
      if (!isTaken) this.#kept?.dropped(sequence);
    }
  }

  close(code: number | undefined, reason: string): void {
    if (this.#stage === "plain") return this.#plain?.close(code, reason);
    if (this.#stage === "opening") {
      this.#leaveKept();
      return this.#end(ABNORMAL, "", false);
    }
    this.#side.close(code ?? 1005, reason);
    if (this.#awayMs !== null) {
      this.#cancelClose = this.#parts.host.after(limits.CLOSE_MS, () => {
        this.#leaveKept();
        this.#end(ABNORMAL, "", false);
      });
      void this.#connect();
    }
  }

  /** Closes the line, and keeps nothing of it: the next user is another one. */
  reset(): void {
    this.#isReset = true;
    if (this.#stage === "opening") this.#end(ABNORMAL, "", false);
    else this.close(1000, "");
  }

  /** Closes the line for this program, which ends; what is kept goes on with the next. */
  async leave(): Promise<void> {
    const kept = this.#kept;
    this.#kept = null;
    if (kept === null) this.#side.close(1000, "");
    if (this.#stage === "plain") this.#plain?.close(1000, "");
    this.#end(kept === null ? 1000 : 1001, "", true);
    await kept?.leave();
  }

  /** Connects to the client's new site (L5). */
  moved(site: KnownSite): void {
    if (this.#stage !== "session" || this.#awayMs !== null || this.#at?.url === site.url) return;
    void this.#connect();
  }

  // ── Connections ──

  async #connect(): Promise<void> {
    const attempt = ++this.#attempt;
    this.#cancel();
    const { host, path, protocols, site: choose, tokens: tokensAt } = this.#parts;
    const site = choose(this.#tried);
    let tokens: readonly string[];
    try {
      tokens = await tokensAt(site);
    } catch {
      return attempt === this.#attempt ? this.#missed(site, attempt) : undefined;
    }
    if (attempt !== this.#attempt || this.#stage === "closed") return;
    const offered = this.#stage === "opening" ? [PLAIN_PROTOCOL, ...protocols] : [];
    const options = { protocols: [SUBPROTOCOL, ...offered], tokens };
    let reader: ChannelReader | null = null;
    let isOpen = false;
    const socket = host.open(site.url.replace(/^http/, "ws") + path, options, {
      opened: (protocol) => {
        isOpen = true;
        cancelLate();
        if (attempt !== this.#attempt) return socket.close();
        reader = this.#taken(site, socket, protocol);
      },
      message: (data) => {
        if (typeof data !== "string" && reader !== null) reader.frame(data);
        else if (this.#plain === socket) this.#parts.listener.message(data);
      },
      closed: (code, reason) => {
        cancelLate();
        if (this.#plain === socket) return this.#end(code, reason, code !== ABNORMAL);
        if (isOpen) reader?.broken();
        else if (attempt === this.#attempt) void this.#missed(site, attempt);
      },
    });
    const cancelLate = host.after(limits.OPEN_MS, () => {
      if (attempt !== this.#attempt) return socket.close();
      void this.#missed(site, attempt);
      socket.close();
    });
  }

  /** Notes which kind a socket is (L1). @returns the reader of a session's frames. */
  #taken(site: KnownSite, socket: Socket, protocol: string): ChannelReader | null {
    this.#at = site;
    this.#tried.clear();
    if (protocol === SUBPROTOCOL) {
      const channel: Channel = {
        send: (frame) => socket.send(frame),
        close: (code, reason) => socket.close(code, reason),
      };
      return this.#side.connected(this.#kept?.channel(channel, () => this.#unkept()) ?? channel);
    }
    if (this.#stage !== "opening") {
      // A stateful session before, and none now: the app has changed.
      socket.close();
      this.#end(REFUSED, "the app has no stateful session here any more", false);
      return null;
    }
    this.#stage = "plain";
    this.#plain = socket;
    void this.#kept?.end();
    this.#kept = null;
    this.#parts.listener.opened(protocol === PLAIN_PROTOCOL ? "" : protocol);
    return null;
  }

  /** Tries another connection where one was not taken. */
  async #missed(site: KnownSite, attempt: number): Promise<void> {
    const isAlive = await this.#parts.isAlive(site);
    if (attempt !== this.#attempt || this.#stage === "closed") return;
    this.#attempt++; // what still comes of it is not waited for
    if (this.#side.stage === "open") return; // it was to be a better one (L5)
    if (isAlive) {
      this.#refusals++;
      await this.#parts.renew(site);
      if (this.isClosed) return;
    }
    this.#tried.add(site.url);
    if (this.#stage === "opening" && this.#isRefused()) return this.#giveUp(); // L3
    this.#again();
  }

  /**
   * Reports whether the socket was refused often and long enough (L3): not just for a moment, as while a session's home
   * is being replaced.
   */
  #isRefused(): boolean {
    const sinceMs = this.#parts.host.nowMs() - (this.#awayMs ?? Infinity);
    return this.#refusals >= limits.REFUSALS_MAX && sinceMs >= limits.REFUSED_MS;
  }

  /** Tries another connection, a little later each time. */
  #again(): void {
    const { host, resumeMs } = this.#parts;
    this.#awayMs ??= host.nowMs();
    if (host.nowMs() - this.#awayMs >= resumeMs && !this.#isAwaited) return this.#giveUp();
    const pause = this.#failures === 0 ? 0 : limits.PAUSE_MS * 2 ** Math.min(this.#failures - 1, 8);
    this.#failures++;
    // All sites were tried: the nearest is as good as any other.
    if (this.#failures % limits.TRIES_BEFORE_ALL === 0) this.#tried.clear();
    this.#cancel();
    this.#cancel = host.after(Math.min(pause, limits.PAUSE_MS_MAX), () => void this.#connect());
  }

  /** True where a session that can't be opened now may lack what this client holds (L6). */
  get #isAwaited(): boolean {
    return this.#refusal !== null && (this.#log?.promised ?? 0) > 0;
  }

  /** Notes a refusal, and tells it once for each reason (L3, L6). */
  #refused({ code, message }: { readonly code: string; readonly message: string }): void {
    const before = this.#refusal;
    this.#refusal = { code, message };
    if (this.#stage === "opening") {
      this.#cancelRefused ??= this.#parts.host.after(limits.REFUSED_MS, () => {
        this.#cancelRefused = null;
        if (this.#stage === "opening" && this.#kept?.saved == null) this.#giveUp();
      });
    }
    if (before?.code !== code || before.message !== message) this.#parts.listener.refused({ code, message });
  }

  /** Ends the line, which got no connection. */
  #giveUp(): void {
    this.#leaveKept();
    if (this.#refusal === null) this.#end(ABNORMAL, "", false);
    else this.#end(LATER, this.#refusal.code, false);
  }

  /**
   * Leaves to the next socket what an earlier page has kept, where this one was never heard; and a log that this client
   * holds (L6).
   */
  #leaveKept(): void {
    const kept = this.#kept;
    const isWanted = this.#stage === "opening" ? kept?.saved != null : (kept?.log.promised ?? 0) > 0;
    if (kept === null || !isWanted || this.#isReset) return;
    void kept.leave();
    this.#kept = null;
  }

  // ── The host side ──

  #newSide(): HostSide {
    const { host } = this.#parts;
    this.#log = this.#kept?.log ?? new HostLog();
    return new HostSide({
      kind: "client",
      instance: host.number(),
      clock: host,
      saved: this.#kept?.saved ?? undefined,
      program: this.#kept?.program ?? 0,
      log: this.#log,
      silentMs: limits.SILENT_MS,
      stalledMs: limits.STALLED_MS,
      listener: {
        opened: () => this.#opened(),
        message: (message) => {
          this.#keepHead();
          this.#parts.listener.message(message);
        },
        acknowledged: () => this.#keepHead(),
        rejected: (_sequence, code, message) => this.#parts.listener.rejected({ code, message }),
        lost: (why) => this.#lost(why),
        closed: (end) => this.#closed(end),
      },
    });
  }

  /**
   * Goes on without a storage, or ends where this client holds the log: the state can't be kept any more (kept_peer.ts,
   * K4).
   */
  #unkept(): void {
    const isHost = (this.#kept?.log.promised ?? 0) > 0;
    this.#kept = null;
    if (isHost) this.#end(ABNORMAL, "", false);
  }

  #keepHead(): void {
    const { identity, epoch, received, acknowledged } = this.#side;
    if (identity !== null) this.#kept?.head({ identity, epoch, received }, acknowledged + 1);
  }

  #opened(): void {
    this.#failures = this.#refusals = 0;
    this.#refusal = null;
    this.#cancelRefused?.();
    this.#keepHead();
    if (this.#stage === "opening") {
      this.#stage = "session";
      this.#awayMs = null;
      this.#parts.listener.opened("");
    } else if (this.#awayMs !== null) {
      this.#awayMs = null;
      this.#parts.listener.back();
    }
  }

  #lost(why: Lost): void {
    if (this.#stage === "closed") return;
    const site = this.#at;
    if (this.#stage === "session" && this.#awayMs === null) {
      this.#awayMs = this.#parts.host.nowMs();
      this.#parts.listener.away();
    }
    if (why.kind === "refused") this.#refused(why);
    if (this.isClosed) return; // the listener has closed it
    // Another site may reach what this one cannot; a first time the site is given a moment.
    const isStuck = why.kind === "stalled" || (why.kind === "refused" && this.#failures > 1);
    if (site !== null && isStuck) this.#tried.add(site.url);
    if (site === null || (why.kind !== "broken" && why.kind !== "silent")) return this.#again();
    // A connection that broke is no dead site: but the next one is better made where a site answers.
    const attempt = ++this.#attempt;
    void this.#parts.isAlive(site).then(() => {
      if (attempt === this.#attempt && this.#stage !== "closed") this.#again();
    });
  }

  #closed(end: HostEnd): void {
    if (end.kind === "bye") return this.#end(end.code, end.reason, true);
    const isFirst = this.#stage === "opening" && this.#kept !== null && this.#kept.saved !== null;
    if (!isFirst) return this.#end(REFUSED, end.code, false);
    // The peer that was here before can't come back (forgotten, or of a session that has ended): this is a new one.
    void this.#kept?.forget().catch(() => {});
    this.#side = this.#newSide();
    this.#again();
  }

  #end(code: number, reason: string, isClean: boolean): void {
    if (this.#stage === "closed") return;
    if (this.#side.stage !== "closed") this.#side.abandon();
    this.#over();
    void this.#kept?.end();
    this.#kept = null;
    this.#parts.listener.closed(code, reason, isClean);
  }

  #over(): void {
    this.#stage = "closed";
    this.#attempt++;
    this.#cancel();
    this.#cancelClose();
    this.#cancelRefused?.();
  }
}
