/**
 * Peers of one stateful session, at its home: which are attached, which of their messages are in the log, which outputs
 * they have.
 *
 * Life: made → `opened` with what the log says, again whenever the session was opened again here → `over` (another site
 * is its home) or `ended`.
 *
 *   hello ─ attach ─▶ session        hello of a known peer ─▶ welcome, what it lacks
 *   message ────────▶ session ─ released ─▶ acknowledgement, outputs, rejections
 *   leave, grace over, too slow ─ detach ─▶ session ─ released ─▶ bye
 *
 * HM1  A peer is welcomed when its attach is in the log, a message acknowledged when it is, an output sent when what
 *      made it is: `released` is the only way out, and what is told there is at all owners. Hosts that are ahead hold
 *      the log themselves: outputs leave to them as `appended` says (reach.ts).
 * HM2  A message is handed to the session once in the life of a home, and what the log has is counted from it: so each
 *      is in the log once, in the order in which its peer sent it, whatever breaks.
 * HM3  A peer has one line. A later hello takes it over, unless an older attempt of the same host side comes late. A
 *      newer program takes the peer back from an older one, and not the other way.
 * HM4  A peer without a line stays attached for its grace, or until others need its room (peer_room.ts). A peer that
 *      left, that was sent away and knows it, or that does not keep up, is detached at once.
 * HM5  Whatever comes on a channel is refused or has its effect on that peer alone.
 */
import type { OpenedPeer } from "../turn/commit.ts";
import type { Peer } from "../turn/event.ts";
import { HomeLine, type HomeLineListener, type Said } from "./home_line.ts";
import { HomePeer, OPENED_WITH, type WaitingEvent } from "./home_peer.ts";
import type { PeerHello, PeerIdentity, PeerRetry } from "./frame.ts";
import { cut } from "./frame_bytes.ts";
import * as limits from "./limits.ts";
import { Lobby } from "./lobby.ts";
import { PeerRoom } from "./peer_room.ts";
import { Reach } from "./reach.ts";
import { Remembered } from "./remembered.ts";
import {
  type Appended,
  type Channel,
  type ChannelReader,
  type HomePorts,
  type LogAnswers,
  type LogAsk,
  type LoggedPeers,
  type OutputToPeer,
  type PeerInput,
  type Released,
} from "./ports.ts";

type Line = HomeLine<HomePeer>;

/** Status of a home side, for operators. */
export interface HomeSideStatus {
  readonly attached: number;
  /** Number of attached peers that have no channel, in their grace. */
  readonly apart: number;
  readonly waiting: number;
  readonly waitingBytes: number;
}

/** Peers of a session, at its home (see the file's header). */
export class HomeSide {
  readonly #ports: HomePorts;
  readonly #peers = new Map<string, HomePeer>();
  /** Peers that host sides have begun since this home side was made, by the number that only these know. */
  readonly #byInstance = new Map<number, HomePeer>();
  /** Hellos that came before the log was read. */
  readonly #lobby: Lobby;
  readonly #reach: Reach;
  readonly #room: PeerRoom;
  /** Channels that are open. */
  readonly #lines = new Set<Line>();
  /** Peers that are to be told something, or have said what they have. */
  readonly #dirty = new Map<HomePeer, number>();
  #cancelSweep: (() => void) | null = null;
  #epoch = 0;
  #isOpen = false;
  #over: ((line: Line) => void) | null = null;
  #order = 0;
  readonly #remembered: Remembered;
  #waitingBytes = 0;

  constructor(ports: HomePorts) {
    this.#ports = ports;
    this.#lobby = new Lobby(ports, ({ identity }) => identity !== null && this.#isKnown(identity));
    this.#remembered = ports.remembered ?? new Remembered(() => ports.clock.nowMs());
    this.#reach = new Reach(ports.clock, this.#remembered.tardy);
    this.#room = new PeerRoom(ports.peersMax);
  }

  get status(): HomeSideStatus {
    const all = [...this.#peers.values()];
    return {
      attached: all.length,
      apart: all.filter(({ line }) => line === null).length,
      waiting: all.reduce((sum, { waiting }) => sum + waiting.length, 0),
      waitingBytes: this.#waitingBytes,
    };
  }

  // ── The session ──

  /**
   * Takes what the log says of the session's peers. Called again when the session is opened again (its isolate was
   * killed, it rested): what peers sent that is not in the log is delivered again, and lines stay.
   */
  opened({ epoch, peers, outputs, ahead, onRecord, leftBehind = [] }: LoggedPeers): void {
    if (this.#over !== null) return;
    this.#epoch = epoch;
    this.#isOpen = true;
    this.#reach.begin(ahead, onRecord);
    const logged = new Map(peers.map((peer) => [peer.id, peer]));
    const given = Map.groupBy(outputs, ({ to }) => to);
    for (const peer of [...this.#peers.values()]) {
      const { id } = peer.peer;
      const own = logged.get(id);
      if (own === undefined) this.#isNotInLog(peer);
      else if (this.#goesOn(peer, own, given.get(id) ?? [])) logged.delete(id);
      else this.#remove(peer, (line) => line.sendOn());
    }
    for (const each of logged.values()) {
      const { kind, id } = each;
      const [key] = this.#ports.keysOf(id);
      const peer = new HomePeer({ kind, id }, key, each, given.get(id) ?? []);
      this.#peers.set(id, peer);
      this.#leave(peer);
    }
    for (const peer of this.#peers.values()) this.#reach.joins(peer);
    const undone = [...this.#peers.values()].flatMap((peer) => {
      peer.handed = 0;
      return peer.hand(this.#ports.handedMax);
    });
    for (const { event } of undone.sort((a, b) => a.order - b.order)) this.#ports.deliver(event);
    for (const peer of [...this.#peers.values()]) this.#seeOff(peer, leftBehind);
    for (const [line, hello] of this.#lobby.take()) if (!line.isOver) this.#greeted(line, hello);
    this.#reach.begun(ahead?.asked ?? []);
  }

  /** Takes a commit that was appended, where hosts hold the log. */
  appended({ entry, outputs }: Appended): void {
    if (this.#over !== null) return;
    this.#reach.flushSoon();
    this.#give(outputs, entry, () => {});
  }

  /** Takes a commit that is at all owners (HM1). */
  released({ done, outputs, entry = 0 }: Released): void {
    if (this.#over !== null) return;
    for (const { event, rejected } of done) {
      if (event.kind !== "detach") this.#done(event, rejected);
    }
    this.#give(outputs, entry, (peer) => this.#reach.flush(peer));
    this.#reach.released(entry);
    for (const { event } of done) if (event.kind === "detach") this.#detached(event.peer);
  }

  /** Notes that other hosts are on record, or ready to be told. */
  hostsChanged(): void {
    if (this.#over === null) this.#reach.hostsChanged();
  }

  #give(outputs: readonly OutputToPeer[], entry: number, flush: (peer: HomePeer) => void): void {
    for (const output of outputs) {
      const peer = this.#peers.get(output.to);
      if (peer === undefined) continue;
      peer.output(output, entry);
      flush(peer);
      if (peer.isTooSlow(this.#ports.outboxBytesMax) && peer.stage !== "detaching") this.#tooSlow(peer);
    }
  }

  /** Asks hosts for the log, for an opening: those that have come, and those that come while time is left. */
  ask(ask: LogAsk): Promise<LogAnswers> {
    return this.#lobby.ask(ask);
  }

  /** Refuses the channels that wait for the session, which can't be opened here now. */
  unavailable(code: string, message: string, retry: PeerRetry): void {
    for (const [line] of this.#lobby.take()) line.refuse(code, message, retry);
  }

  /** Ends it where another site is the session's home now, or will be: all channels are told so. */
  over(site: string | null): void {
    this.#close((line) => line.farewell({ kind: "moved", site }));
  }

  /** Ends it with the session: nobody is attached any more. */
  ended(code: number, reason: string): void {
    this.#close((line) => line.farewell({ kind: "bye", code, reason }));
  }

  #close(tell: (line: Line) => void): void {
    this.#over ??= tell;
    this.#cancelSweep?.();
    for (const peer of [...this.#peers.values()]) {
      peer.tell();
      this.#remove(peer, tell);
    }
    for (const line of [...this.#lines]) tell(line);
    this.#lobby.take();
    this.#reach.close();
  }

  #done(event: PeerInput, rejected: { readonly code: string; readonly message: string } | null): void {
    const peer = this.#peers.get(event.kind === "attach" ? event.peer.id : event.peer);
    if (peer === undefined) return; // it was sent away meanwhile
    this.#settle(peer, event.kind);
    this.#hand(peer);
    if (event.kind === "message") {
      const { received, line } = peer;
      if (rejected !== null && line?.isWelcomed === true) {
        const code = cut(rejected.code, limits.CODE_BYTES_MAX),
          message = cut(rejected.message, limits.TEXT_BYTES_MAX);
        line.send({ kind: "rejected", sequence: received, code, message });
      }
      return this.#touch(peer);
    }
    if (peer.stage !== "attaching") return; // it has left already
    if (rejected !== null) {
      return this.#remove(peer, (line) => line.refuse(rejected.code, rejected.message, "fix"));
    }
    peer.stage = "attached";
    this.#welcome(peer);
  }

  #welcome(peer: HomePeer): void {
    peer.welcome(this.#epoch);
    this.#reach.greeted(peer);
  }

  #settle(peer: HomePeer, kind: PeerInput["kind"]): void {
    const before = peer.waitingBytes;
    peer.done(kind);
    this.#waitingBytes -= before - peer.waitingBytes;
  }

  #detached(id: string): void {
    const peer = this.#peers.get(id);
    if (peer?.stage !== "detaching") return;
    peer.tell();
    const bye = (line: Line) => line.farewell({ kind: "bye", code: 1000, reason: "" });
    const tell = peer.lastWord ?? bye;
    this.#remove(peer, (line) => this.#reach.whenFree(id, () => tell(line)));
  }

  // ── What the log says of those who are here ──

  /** Sees to a peer that the log does not have: its attach is not in the log yet, or its detach is. */
  #isNotInLog(peer: HomePeer): void {
    if (peer.waiting[0]?.event.kind === "attach") return;
    const { id } = peer.peer;
    if (peer.stage !== "detaching") {
      peer.stage = "detaching";
      peer.lastWord = (line) => line.refuse("peer_unknown", `peer ${id} is not attached`, "reset");
    }
    this.#detached(id);
  }

  /** Takes what the log says of a peer. Returns false where that does not go on from what was said here. */
  #goesOn(peer: HomePeer, logged: OpenedPeer, outputs: readonly OutputToPeer[]): boolean {
    const isNew = peer.waiting[0]?.event.kind === "attach";
    const settled = logged.received - peer.received;
    const handed = peer.waiting.filter(({ event }) => event.kind === "message").length;
    const missing = outputs.filter(({ sequence }) => sequence > peer.sent);
    if (settled < 0 || settled > handed || logged.sent - peer.sent !== missing.length) return false; // HM2
    if (missing.some(({ sequence }, i) => sequence !== peer.sent + 1 + i)) return false;
    if (isNew) this.#settle(peer, "attach");
    for (let i = 0; i < settled; i++) this.#settle(peer, "message");
    if (isNew && peer.stage === "attaching") {
      peer.stage = "attached";
      this.#welcome(peer);
    }
    for (const output of missing) peer.output(output, OPENED_WITH);
    this.#reach.flush(peer);
    peer.reported = 0; // whoever opened it anew has not been told
    this.#touch(peer);
    return true;
  }

  // ── Channels ──

  /**
   * Takes a channel that was opened to this home by a program that may attach as such a peer. Returns the reader to
   * which whatever comes on it is to be given.
   */
  accept(channel: Channel, kind: Peer["kind"]): ChannelReader {
    const line = new HomeLine<HomePeer>(channel, kind, this.#ports.clock, this.#listener);
    this.#lines.add(line);
    this.#over?.(line);
    return line;
  }

  readonly #listener: HomeLineListener<HomePeer> = {
    greeted: (line, hello) => this.#greeted(line, hello),
    heard: (line, peer, frame, bytes) => this.#heard(line, peer, frame, bytes),
    gave: (line, frame) => this.#lobby.gave(line, frame),
    gone: (line) => {
      this.#lines.delete(line);
      this.#lobby.leave(line);
      const { peer } = line;
      if (peer?.line === line) this.#leave(peer);
    },
  };

  #greeted(line: Line, hello: PeerHello): void {
    if (!this.#isOpen) return this.#lobby.wait(line, hello);
    if (hello.peer !== line.kind) {
      return line.refuse("peer_forged", `a ${line.kind} can't attach as ${hello.peer}`, "fix");
    }
    if (hello.identity === null) return this.#greetNew(line, hello);
    const { id } = hello.identity;
    const isKnown = this.#isKnown(hello.identity);
    if (hello.epoch > this.#epoch) return this.#outrun(line, isKnown, hello.epoch);
    const peer = this.#peers.get(id);
    if (!isKnown && peer !== undefined) {
      return line.refuse("peer_forged", `the key of peer ${id} is not the one that it was given`, "fix");
    }
    if (peer === undefined || peer.stage === "detaching" || peer.peer.kind !== hello.peer) {
      const message = `peer ${id} is not attached to this session any more`;
      const refuse = () => line.refuse("peer_unknown", message, "reset");
      return isKnown ? this.#reach.whenFree(id, refuse) : refuse(); // it drops its log with that, too
    }
    this.#bind(peer, line, hello);
  }

  #isKnown({ id, key }: PeerIdentity): boolean {
    return this.#ports.keysOf(id).some((one) => isSame(key, one));
  }

  /**
   * Sends a host away that has seen a newer epoch. A host without a key of this session may be right, as one of its
   * next life; but nothing is done at its word.
   */
  #outrun(line: Line, isKnown: boolean, epoch: number): void {
    line.sendOn();
    if (isKnown && this.#remembered.outran.told()) this.#ports.outrun(epoch);
  }

  /** Greets a host side that was never welcomed; the peer that it began in an earlier attempt is its own. */
  #greetNew(line: Line, hello: PeerHello): void {
    const known = this.#byInstance.get(hello.instance);
    if (known !== undefined && known.stage !== "detaching") return this.#bind(known, line, hello);
    const room = this.#room.forOne(this.#peers.size);
    if (room === null) {
      return line.refuse(
        "limit_peers",
        "as many peers as may be are attached to this session already",
        "retry",
      );
    }
    if (room.detach !== null) this.#detach(room.detach);
    const id = this.#ports.newId();
    const [key] = this.#ports.keysOf(id);
    const peer = new HomePeer({ kind: hello.peer, id }, key, null, []);
    this.#peers.set(id, peer);
    peer.begunBy = hello.instance;
    this.#byInstance.set(hello.instance, peer);
    peer.bind(line, hello);
    this.#deliver(peer, { kind: "attach", peer: peer.peer }, 0);
  }

  #bind(peer: HomePeer, line: Line, hello: PeerHello): void {
    const { id } = peer.peer;
    if (hello.instance === peer.instance && hello.attempt <= peer.attempt) {
      return line.refuse("superseded", `peer ${id} has opened another channel since`, "retry");
    }
    const isTaken = (from: Line | null, retry: PeerRetry) =>
      from?.refuse("superseded", `another program speaks for peer ${id}`, retry);
    if (peer.hasTakenFrom(hello.instance)) return isTaken(line, "fix");
    const misfit = peer.misfit(hello);
    if (misfit !== null) {
      // The refused host drops its log with that: not while that log may be waited for. The program whose line this is
      // comes again, if it lives.
      if (this.#reach.isAwaited(id)) peer.line?.sendOn();
      return this.#reach.whenFree(id, () => line.refuse(misfit.code, misfit.message, "reset"));
    }
    const old = peer.line;
    // HM3. The peer's own host side does not listen to the old line any more; another one is told that it has lost the
    // peer, or may have.
    const isOwn = hello.instance === peer.instance, isLater = peer.isLaterThan(hello);
    peer.bind(line, hello);
    this.#room.found(peer);
    isLater ? old?.sendOn() : isTaken(old, isOwn ? "retry" : "fix");
    if (peer.stage === "attached") this.#welcome(peer);
    this.#touch(peer);
    this.#seeOff(peer);
  }

  /** Takes a frame of a peer (HM5). */
  #heard(line: Line, peer: HomePeer, frame: Said, bytes: number): void {
    if (frame.kind === "ping") return line.send({ kind: "pong", number: frame.number });
    if (frame.kind === "leave") return this.#takesLeave(line, peer, frame.last);
    const isLeaving = peer.stage !== "attached";
    if (isLeaving && peer.lastWord !== null && frame.kind === "message") return; // it does not know yet
    if (!line.isWelcomed || (isLeaving && frame.kind === "message")) {
      return line.refuse("message_malformed", "a message comes before the welcome or after the bye", "fix");
    }
    // Also from a peer that leaves: its detach may wait for just that (docs/protocol/hosts.md, HO3).
    if (frame.kind === "taken") {
      this.#reach.taken(peer, frame.records);
      return peer.answer();
    }
    if (frame.kind === "ack") {
      if (isLeaving || !peer.heard(line, frame.received)) return;
      this.#touch(peer);
      peer.answer();
      return this.#seeOff(peer);
    }
    const isNew = peer.isNew(line, frame, bytes);
    if (isNew === null) return;
    this.#touch(peer);
    if (!isNew) return;
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > limits.SESSION_WAITING_BYTES_MAX) {
      return line.refuse("overloaded", `${this.#waitingBytes} bytes wait for this session already`, "retry");
    }
    this.#deliver(peer, { kind: "message", peer: peer.peer.id, message: frame.payload }, bytes);
  }

  /** Detaches a peer that leaves (HM4). */
  #takesLeave(line: Line, peer: HomePeer, last: number): void {
    if (peer.stage === "detaching") return;
    if (last === line.next - 1) return this.#detach(peer);
    line.refuse("message_gap", `a peer leaves after message ${last}, and ${line.next} was to come`, "retry");
  }

  #deliver(peer: HomePeer, event: PeerInput, bytes: number): void {
    const waiting: WaitingEvent = { event, bytes, order: ++this.#order };
    peer.wait(waiting);
    this.#waitingBytes += bytes;
    this.#hand(peer);
  }

  #hand(peer: HomePeer): void {
    for (const { event } of peer.hand(this.#ports.handedMax)) this.#ports.deliver(event);
  }

  // ── Leaving ──

  /** Begins the grace of a peer that has no line (HM4). */
  #leave(peer: HomePeer): void {
    peer.line = null;
    this.#reach.lost(peer);
    if (this.#over !== null || peer.stage === "detaching" || !this.#peers.has(peer.peer.id)) return;
    peer.cancelGrace?.();
    this.#room.lost(peer);
    peer.cancelGrace = this.#ports.clock.after(this.#ports.graceMs ?? limits.GRACE_MS, () => {
      if (peer.line === null && peer.stage !== "detaching") this.#detach(peer);
    });
  }

  /** Detaches a peer that was sent away and knows it, or was left behind (HM4). */
  #seeOff(peer: HomePeer, leftBehind: readonly string[] = []): void {
    const isOver = peer.hasLeft || leftBehind.includes(peer.peer.id);
    if (isOver && peer.stage === "attached") this.#detach(peer);
  }

  #tooSlow(peer: HomePeer): void {
    const { line, peer: { id } } = peer;
    const refuse = (line: Line) =>
      line.refuse("limit_slow", `peer ${id} does not take what it is sent`, "reset");
    this.#detach(peer);
    if (this.#reach.isAwaited(id)) peer.lastWord = refuse; // it drops what it holds with that (reach.ts, PR5)
    else if (line !== null) refuse(line);
  }

  #detach(peer: HomePeer): void {
    peer.cancelGrace?.();
    peer.stage = "detaching";
    this.#room.leaves(peer);
    this.#deliver(peer, { kind: "detach", peer: peer.peer.id }, 0);
  }

  #remove(peer: HomePeer, tell: (line: Line) => void): void {
    peer.cancelGrace?.();
    if (this.#peers.delete(peer.peer.id)) this.#room.gone(peer);
    if (this.#byInstance.get(peer.begunBy) === peer) this.#byInstance.delete(peer.begunBy);
    this.#dirty.delete(peer);
    this.#reach.gone(peer);
    this.#waitingBytes -= peer.waitingBytes;
    const { line } = peer;
    peer.line = null;
    if (line !== null) tell(line);
  }

  // ── Acknowledgements ──

  /**
   * Notes that a peer is to be told something, or has said what it has: that goes on soon, or at once where it is much.
   */
  #touch(peer: HomePeer): void {
    const times = (this.#dirty.get(peer) ?? 0) + 1;
    this.#dirty.set(peer, times >= limits.ACK_EVERY ? 0 : times);
    if (times >= limits.ACK_EVERY) peer.tell();
    this.#cancelSweep ??= this.#ports.clock.after(limits.ACK_MS, () => this.#sweep());
  }

  #sweep(): void {
    this.#cancelSweep = null;
    const outputs: Record<string, number> = {};
    for (const peer of this.#dirty.keys()) {
      peer.tell();
      if (peer.reported !== peer.acknowledged) outputs[peer.peer.id] = peer.reported = peer.acknowledged;
    }
    this.#dirty.clear();
    if (Object.keys(outputs).length > 0) this.#ports.acknowledge(outputs);
  }
}

/** Compares keys, in the same time whatever differs. */
function isSame(a: PeerIdentity["key"], b: PeerIdentity["key"]): boolean {
  let differs = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) differs |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return differs === 0;
}
