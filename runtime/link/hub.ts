/**
 * All links of one site: listens for children and peers, keeps the link to the parent, dials peers on demand.
 *
 * Life: `LinkHub.start` listens and begins to dial the parent → … → `close` says goodbye everywhere.
 *
 * Invariants beyond those of SiteLink and Connection:
 * LU1  At most one connection carries the link to a site. When two peers dial each other at once, the one that the site
 *      with the smaller id dialled is kept, at both sides.
 * LU2  A relation is what both sides declare: the dialer says "child" or "peer", the acceptor admits that or not. The
 *      parent is never a peer, and neither is a connected child.
 * LU3  Nothing that arrives can stop the hub: a connection that misbehaves is closed, counted and logged.
 */
import { strict as assert } from "node:assert";
import { randomBytes } from "node:crypto";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import type { ByteConnection } from "./byte_connection.ts";
import { Connection, type ConnectionEnd } from "./connection.ts";
import { Emulation, type LinkControl } from "./emulation.ts";
import type { ReceivedAnswer, RequestOptions } from "./exchanges.ts";
import type { LinkHubOptions } from "./hub_options.ts";
import { dial } from "./dial.ts";
import { DialNotes } from "./dial_notes.ts";
import { Doorkeeper } from "./doorkeeper.ts";
import { type Acquaintance, type DialingSite, HandshakeError, type SiteIdentity } from "./handshake.ts";
import { BOOT_BYTES } from "./hello.ts";
import { checkLimits, DEFAULT_LINK_LIMITS, type LinkLimits, SECRET_BYTES_MIN } from "./limits.ts";
import { errorText, LinkError } from "./link_error.ts";
import { equalProof } from "./proof.ts";
import { SecretChoice } from "./secret_choice.ts";
import { Refusals } from "./refusals.ts";
import { type LinkRole, type LinkStatus, SiteLink } from "./site_link.ts";
import { TCP, type Transport } from "./transport.ts";
import { Witness } from "./witness.ts";
import type { Wire } from "./wire.ts";

/** Refusal that tells a peer to wait for our connection instead. */
const DOUBLE = "this site has dialled at the same time";
/** Reason of the goodbye when a site stops. */
const STOPS = "the site stops";

export interface HubStatus {
  readonly links: readonly LinkStatus[];
  /** Number of connections refused since start: strangers, garbage, wrong versions, sites not admitted. */
  readonly refused: number;
}

export class LinkHub {
  readonly #options: LinkHubOptions;
  readonly #limits: LinkLimits;
  readonly #transport: Transport;
  readonly #self: SiteIdentity;
  readonly #nowMs: () => number;
  readonly #address: string;
  readonly #doorkeeper: Doorkeeper;
  readonly #witness: Witness;
  readonly #links = new Map<string, SiteLink>();
  readonly #refusals: Refusals;
  readonly #dialNotes: DialNotes;
  readonly #emulation: Emulation;
  /** Tasks that run until the hub is closed. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #ticker: ReturnType<typeof setInterval>;
  #tickMs: number;
  #closed = false;
  #wakeParent: (() => void) | null = null;
  #parent: LinkHubOptions["parent"];

  /** Listens, and begins to dial the parent. @throws when the address can't be listened at. */
  static start(options: LinkHubOptions): LinkHub {
    return new LinkHub(options);
  }

  private constructor(options: LinkHubOptions) {
    assert(
      options.secrets.every((secret) => secret.length >= SECRET_BYTES_MIN),
      `The cluster secret must have ${SECRET_BYTES_MIN} bytes or more`,
    );
    assert(options.parent?.site !== options.site, `Site ${options.site} cannot be its own parent`);
    this.#options = options;
    this.#parent = options.parent;
    this.#limits = checkLimits({ ...DEFAULT_LINK_LIMITS, ...options.limits });
    this.#transport = options.transport ?? TCP;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#self = { site: options.site, incarnation: options.incarnation, boot: randomBytes(BOOT_BYTES) };
    this.#dialNotes = new DialNotes(this.#nowMs);
    this.#refusals = new Refusals(this.#nowMs, (source, reason, before) => {
      options.log({ level: "warn", event: "link.refused", source, reason, before });
    });
    const { emulate = () => null, random = Math.random, isCut } = options;
    this.#emulation = new Emulation(emulate, random, isCut);
    const listener = this.#transport.listen(options.listen);
    this.#address = listener.address;
    this.#doorkeeper = new Doorkeeper({
      listener,
      emulation: this.#emulation,
      self: this.#self,
      secrets: new SecretChoice(options.secrets),
      limits: this.#limits,
      judge: (arrival) => this.#judge(arrival),
      admitted: (arrival, wire, acquaintance) => this.#admitted(arrival, wire, acquaintance),
      refused: (source, reason) => {
        if (!reason.endsWith(DOUBLE)) this.#refusals.add(source, reason);
      },
    });
    this.#witness = new Witness({
      transport: this.#transport,
      emulation: this.#emulation,
      addressOf: (site) => site === this.#parent?.site ? this.#parent.address : options.addressOf(site),
      isLive: (site) => this.isConnected(site),
      refused: (site) => options.handlers.refused?.(site),
    });
    this.#tickMs = this.#nowMs();
    this.#ticker = setInterval(() => this.#tick(), this.#tickEveryMs);
    this.#task(this.#doorkeeper.run());
    if (options.parent) this.#task(this.#keepParent());
  }

  /** Address at which other sites reach this one: "host:port". */
  get address(): string {
    return this.#address;
  }

  /** Control that delays, slows and cuts this site's links while it runs. */
  get control(): LinkControl {
    return this.#emulation;
  }

  get #tickEveryMs(): number {
    return Math.max(10, this.#limits.pingMs / 4);
  }

  /**
   * Sends a store message. Resolves when the link has room for another; dropped when the site is not reachable.
   * A peer is dialled on demand.
   */
  send(site: string, message: Uint8Array): Promise<void> {
    if (message.length > this.#limits.messageBytesMax) {
      const text =
        `Cannot send a store message of ${message.length} bytes: up to ${this.#limits.messageBytesMax}`;
      return Promise.reject(new LinkError("limit", text));
    }
    const link = this.#links.get(site);
    if (link?.live) return link.live.send(message);
    const dialled = this.#peerLink(site);
    if (!dialled?.dialling || !dialled.queue(message, this.#limits.dialQueueBytesMax)) {
      return Promise.resolve();
    }
    return dialled.dialling;
  }

  /**
   * Sends a request and waits for its answer's head; bodies stream both ways. A peer is dialled on demand.
   * @throws LinkError
   */
  async request(
    site: string,
    kind: string,
    head: Uint8Array,
    options?: RequestOptions,
  ): Promise<ReceivedAnswer> {
    let link = this.#links.get(site);
    if (!link?.live) {
      link = this.#peerLink(site);
      await link?.dialling;
    }
    if (!link?.live) {
      options?.body?.cancel().catch(() => {});
      throw new LinkError("unreachable", `Site ${site} is not reachable`);
    }
    const answer = await link.live.request(kind, head, options);
    const held = this.#options.hold?.(kind) ?? null;
    if (held !== null) await held;
    return answer;
  }

  /** Reports whether a request to a site goes out at once. */
  isConnected(site: string): boolean {
    return (this.#links.get(site)?.live ?? null) !== null;
  }

  status(): HubStatus {
    return { links: [...this.#links.values()].map((link) => link.status), refused: this.#refusals.count };
  }

  /**
   * Takes a connection that did not come through the listener (a WebSocket, `overWebSocket`) through the handshake.
   * Resolves when it has ended. `source` is logged when it is refused.
   */
  accept(connection: ByteConnection, source: string): Promise<void> {
    return this.#doorkeeper.take(connection, source);
  }

  /** Ends the link to a site that is no neighbour any more; `admit` decides whether it may come again. */
  dismiss(site: string, reason: string): void {
    void this.#links.get(site)?.connection?.goodbye(reason);
  }

  /** Changes the parent: the link to the one before ends, and the new one is dialled. */
  moveTo(parent: NonNullable<LinkHubOptions["parent"]>): void {
    const before = this.#parent;
    assert(
      before !== null && parent.site !== this.#options.site,
      "Only a site below the root has another parent",
    );
    this.#parent = parent;
    this.#links.get(before.site)?.cancelDial?.("this site has another parent now");
    this.dismiss(before.site, "this site has another parent now");
    // A connection that the two have already was made under another relation.
    if (parent.site !== before.site) this.dismiss(parent.site, "this site becomes a child of that one");
    this.#wakeParent?.();
  }

  /** Says goodbye to all sites, and stops. Nothing is delivered after it has resolved. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#doorkeeper.close();
    clearInterval(this.#ticker);
    this.#witness.close();
    for (const link of this.#links.values()) link.cancelDial?.(STOPS);
    this.#wakeParent?.();
    await Promise.all([...this.#links.values()].map((link) => link.connection?.goodbye(STOPS)));
    await Promise.all(this.#tasks);
    await this.#emulation.timer.close();
  }

  #task(task: Promise<void>): void {
    this.#tasks.add(task);
    task.finally(() => this.#tasks.delete(task));
  }

  #link(site: string, role: LinkRole): SiteLink {
    let link = this.#links.get(site);
    if (!link) {
      link = new SiteLink(site, role, {
        connected: (link) => this.#onConnected(link),
        disconnected: (link, ending) => this.#onDisconnected(link, ending),
      });
      this.#links.set(site, link);
    }
    return link;
  }

  #onConnected(link: SiteLink): void {
    this.#dialNotes.connected(link.site);
    const incarnation = link.connection?.acquaintance.incarnation ?? "";
    this.#options.log({
      level: "info",
      event: "link.connected",
      site: link.site,
      role: link.role,
      incarnation,
    });
    this.#options.handlers.connected(link.site, link.role, { incarnation });
  }

  #onDisconnected(link: SiteLink, ending: ConnectionEnd): void {
    this.#options.log({
      level: ending.violation ? "warn" : "info",
      event: "link.disconnected",
      site: link.site,
      role: link.role,
      planned: ending.planned,
      reason: ending.reason,
    });
    this.#options.handlers.disconnected(link.site, ending.planned);
    if (!this.#closed && (!ending.planned || ending.reason === STOPS)) this.#witness.look(link.site, true);
  }

  /** Finds out whether a site listens to which no link is up: `handlers.refused` is called where it does not. */
  look(site: string): void {
    if (!this.isConnected(site)) this.#witness.look(site, false);
  }

  /** Takes an admitted connection as the link's, and reads it to its end. */
  async #carry(
    link: SiteLink,
    role: LinkRole,
    wire: Wire,
    acquaintance: Acquaintance,
    dialer: boolean,
  ): Promise<ConnectionEnd> {
    const { handlers, hold } = this.#options;
    const connection: Connection = new Connection({
      wire,
      acquaintance,
      dialer,
      limits: this.#limits,
      counters: link.counters,
      nowMs: this.#nowMs,
      handlers: {
        message: (bytes) => {
          const held = hold?.(null) ?? null;
          if (held === null) return handlers.message(link.site, bytes);
          // The owner that was told that the link is down is told nothing more of it.
          return held.then(() =>
            link.connection === connection ? handlers.message(link.site, bytes) : undefined
          );
        },
        request: (request) => {
          const held = hold?.(request.kind) ?? null;
          const taken = () => handlers.request(link.site, request);
          return held === null ? taken() : held.then(taken);
        },
      },
    });
    link.adopt(connection, role);
    const ending = await connection.run();
    link.release(ending, connection);
    return ending;
  }

  async #admitted(arrival: DialingSite, wire: Wire, acquaintance: Acquaintance): Promise<void> {
    const link = this.#link(arrival.site, arrival.role);
    // A peer's own dial goes on: the other side refuses it as a double (LU1), and would count one that ends halfway
    // as a stranger.
    if (arrival.role === "peer") link.arrived?.();
    else link.cancelDial?.("the other side's connection was first");
    await this.#carry(link, arrival.role, wire, acquaintance, false);
  }

  /** Judges whether a site whose proof was right may come in under its claimed role (LU1, LU2). */
  #judge(arrival: DialingSite): string | null {
    const { site, role } = arrival;
    if (site === this.#parent?.site) return `site ${site} is this site's parent`;
    const link = this.#links.get(site);
    if (role === "peer" && link) {
      if (link.live && link.role === "child") return `site ${site} is connected as a child`;
      if (this.#isDouble(link, arrival)) return DOUBLE;
    }
    // A lost disk is found out when the old connection has ended, within a few pings: until then the new disk counts as
    // another site's.
    const held = role === "child" && link?.role === "child" ? link.live?.acquaintance.incarnation : undefined;
    if (held !== undefined && held !== arrival.incarnation) {
      return `site ${site} is connected with another disk: do two sites have this id?`;
    }
    return this.#options.admit(site, role);
  }

  /**
   * Reports whether a peer dials us while our dial to it is under way, or has only just succeeded, and ours is the one
   * to keep (LU1).
   */
  #isDouble(link: SiteLink, arrival: DialingSite): boolean {
    if (this.#options.site > arrival.site) return false;
    if (link.dialling) return true;
    const { connection } = link;
    if (!connection?.dialer || !equalProof(connection.acquaintance.boot, arrival.boot)) return false;
    return this.#nowMs() - connection.madeMs < this.#limits.handshakeMs;
  }

  /** Makes one attempt to reach a site. Resolves when the connection has ended. @throws when it was never made. */
  async #dial(
    site: string,
    address: string,
    role: "parent" | "peer",
    onMade: () => void,
  ): Promise<ConnectionEnd> {
    const link = this.#link(site, role);
    const { made, cancel } = dial({
      transport: this.#transport,
      emulation: this.#emulation,
      self: this.#self,
      secrets: this.#options.secrets,
      site,
      address,
      role: role === "parent" ? "child" : "peer",
      timeoutMs: this.#limits.handshakeMs,
    });
    link.cancelDial = cancel;
    const [wire, acquaintance] = await made.finally(() => {
      if (link.cancelDial === cancel) link.cancelDial = null;
    });
    if (wire.closed || link.live) {
      wire.close();
      throw new HandshakeError("the other side's connection was first");
    }
    onMade();
    return await this.#carry(link, role, wire, acquaintance, true);
  }

  /** Keeps the link to the parent up, with growing pauses between attempts. */
  async #keepParent(): Promise<void> {
    let pauseMs = this.#limits.retryMsMin;
    while (!this.#closed && this.#parent !== null) {
      const parent = this.#parent, { site, address } = parent;
      let madeMs = 0;
      try {
        const ending = await this.#dial(site, address, "parent", () => madeMs = this.#nowMs());
        // A site that is sent away as soon as it has come tries again more and more rarely.
        const isUnwanted = ending.planned && this.#nowMs() - madeMs < this.#limits.retryMsMax;
        if (!isUnwanted) pauseMs = this.#limits.retryMsMin;
      } catch (error) {
        if (parent === this.#parent) this.#noteFailedDial("warn", site, address, error);
      }
      if (this.#closed) return;
      if (parent !== this.#parent) pauseMs = this.#limits.retryMsMin;
      // The pause is between half and all of it, so that a thousand children of a restarted parent do not come at once.
      await this.#pause(pauseMs * (0.5 + Math.random() / 2));
      pauseMs = Math.min(2 * pauseMs, this.#limits.retryMsMax);
    }
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wakeParent = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wakeParent = null;
  }

  /** Returns the link to a peer, with a dial under way if it was not connected; undefined when it can't be dialled. */
  #peerLink(site: string): SiteLink | undefined {
    if (this.#closed || site === this.#options.site || site === this.#parent?.site) return undefined;
    const known = this.#links.get(site);
    if (known?.dialling) return known;
    const address = this.#options.addressOf(site);
    if (address === null) return undefined;
    const link = this.#link(site, "peer");
    const settled = Promise.withResolvers<void>();
    link.dialling = settled.promise;
    const done = () => {
      if (link.dialling === settled.promise) link.dialling = link.arrived = null;
      settled.resolve();
    };
    link.arrived = done;
    this.#task(this.#reachPeer(link, address, done).finally(done));
    return link;
  }

  async #reachPeer(link: SiteLink, address: string, made: () => void): Promise<void> {
    try {
      await this.#dial(link.site, address, "peer", made);
    } catch (error) {
      // Both have dialled: the other side's connection is about to arrive.
      if (error instanceof HandshakeError && error.message.endsWith(DOUBLE)) await this.#arrival(link);
      if (link.live || this.#closed) return;
      this.#noteFailedDial("info", link.site, address, error);
      link.drop();
      this.#options.handlers.unreachable?.(link.site);
    }
  }

  #noteFailedDial(level: "info" | "warn", site: string, address: string, error: unknown): void {
    if (this.#closed) return;
    this.#witness.failed(site, error);
    const reason = errorText(error);
    const told = this.#dialNotes.failed(site, reason, error instanceof Deno.errors.ConnectionRefused);
    if (told === null) return;
    const { warns, ...more } = told;
    const event = { event: "link.dial_failed", site, address, reason, ...more };
    this.#options.log({ level: warns ? level : "info", ...event });
  }

  /** Waits for a connection that the other side makes. */
  async #arrival(link: SiteLink): Promise<void> {
    if (link.live) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#limits.handshakeMs);
      link.arrived = link.cancelDial = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    link.arrived = link.cancelDial = null;
  }

  #tick(): void {
    const nowMs = this.#nowMs();
    const lateMs = nowMs - this.#tickMs - this.#tickEveryMs;
    this.#tickMs = nowMs;
    for (const link of this.#links.values()) {
      const { connection } = link;
      if (!connection) continue;
      connection.tick(nowMs, lateMs);
      if (link.role === "peer" && connection.dialer && connection.unusedMs(nowMs) > this.#limits.peerIdleMs) {
        void connection.goodbye("idle");
      }
    }
  }
}
