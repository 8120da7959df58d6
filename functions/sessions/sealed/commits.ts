/**
 * Encoding of commits in the records of a sealed log, each told against those before it in its series.
 *
 *   varint count × 16 + flags · [ epoch ] · [ wake ] · bytes
 *
 *   4  varint epoch     8  byte 0 no timer, 1 later, 2 earlier; for 1 and 2 a varint of milliseconds
 *   0  sized bytes      1  a message of the receiver      2  varint which: a message of a peer whose message came before
 *
 * Nothing else is left out than what CF1 says, and nothing is told against what others have said: how long a record is must
 * not show its receiver what is in it.
 *
 * CF1  A commit that is read is what was written, byte for byte, whatever its bytes are: bytes that are one message,
 *      with nothing seen of the store, leave out whose it is; all others stand as they are.
 */
import { CodecError, type Reader, Writer } from "../../../store/model/codec.ts";
import type { LogPiece } from "../log/asks.ts";
import { pastHead, pastSaid, peerInMessage } from "../turn/log_entry.ts";

const FLAGS = 16;
const AS_IT_IS = 0, OWN = 1, KNOWN = 2, FORM = 3;
const EPOCH_FOLLOWS = 4, WAKE_FOLLOWS = 8;
const NO_TIMER = 0, LATER = 1, EARLIER = 2;
/** First byte of a commit that says nothing of the store, before its entries (functions/sessions/serve/pieces.ts). */
const PLAIN = 2;
/** Number of peers that are known by their place: all of them are looked through for each message. */
const PEERS_MAX = 64;

/** State of one series, against which its commits are told. */
export class CommitForm {
  #epoch: number;
  #wakeAtMs = 0;
  /** Peers, as sized texts: the receiver, and those whose messages came as they are. */
  readonly #peers: Uint8Array[];

  constructor(epoch: number, receiver: string) {
    this.#epoch = epoch;
    this.#peers = [new Writer(receiver.length + 2).text(receiver).done()];
  }

  write(writer: Writer, { epoch, count, wakeAtMs, bytes }: LogPiece): void {
    const peer = count === 1 && bytes[0] === PLAIN ? peerInMessage(bytes, 1) : null;
    const which = peer === null ? -1 : this.#peers.findIndex((each) => isAt(bytes, peer.from, each));
    const form = which < 0 ? AS_IT_IS : which === 0 ? OWN : KNOWN;
    writer.uint(
      count * FLAGS + form + (epoch === this.#epoch ? 0 : EPOCH_FOLLOWS) +
        (wakeAtMs === this.#wakeAtMs ? 0 : WAKE_FOLLOWS),
    );
    if (epoch !== this.#epoch) writer.uint(this.#epoch = epoch);
    if (wakeAtMs !== this.#wakeAtMs) this.#writeWake(writer, wakeAtMs);
    if (peer === null || form === AS_IT_IS) {
      writer.bytes(bytes);
      this.#learn(bytes, peer);
      return;
    }
    if (form === KNOWN) writer.uint(which);
    writer.part(bytes, 1, peer.from).part(bytes, peer.to, bytes.length);
  }

  /** Reads the next commit, which begins with the entry `first`. @throws CodecError */
  read(reader: Reader, plain: Uint8Array, first: number): LogPiece {
    const head = reader.uint(), flags = head % FLAGS, form = flags & FORM;
    const count = Math.floor(head / FLAGS);
    if (count === 0) throw new CodecError("a commit of nothing");
    if ((flags & EPOCH_FOLLOWS) !== 0) this.#epoch = reader.uint();
    if ((flags & WAKE_FOLLOWS) !== 0) this.#readWake(reader);
    const bytes = form === AS_IT_IS ? this.#asItIs(reader, count) : this.#message(reader, plain, form);
    return { epoch: this.#epoch, first, count, wakeAtMs: this.#wakeAtMs, bytes };
  }

  #asItIs(reader: Reader, count: number): Uint8Array {
    const bytes = reader.bytes();
    this.#learn(bytes, count === 1 && bytes[0] === PLAIN ? peerInMessage(bytes, 1) : null);
    return bytes;
  }

  #message(reader: Reader, plain: Uint8Array, form: number): Uint8Array {
    const peer = form === OWN ? this.#peers[0] : form === KNOWN ? this.#peers[reader.uint()] : undefined;
    if (peer === undefined) throw new CodecError("a message of a peer that was not named");
    const at = reader.position, middle = pastHead(plain, at);
    const head = reader.raw(middle - at);
    const said = reader.raw(pastSaid(plain, middle, plain[at] ?? 0) - middle);
    const bytes = new Uint8Array(1 + head.length + peer.length + said.length);
    bytes[0] = PLAIN;
    bytes.set(head, 1);
    bytes.set(peer, 1 + head.length);
    bytes.set(said, 1 + head.length + peer.length);
    return bytes;
  }

  #learn(bytes: Uint8Array, peer: { readonly from: number; readonly to: number } | null): void {
    if (peer === null || this.#peers.length >= PEERS_MAX) return;
    this.#peers.push(bytes.slice(peer.from, peer.to));
  }

  #writeWake(writer: Writer, wakeAtMs: number): void {
    const later = wakeAtMs - this.#wakeAtMs;
    this.#wakeAtMs = wakeAtMs;
    if (wakeAtMs === 0) writer.byte(NO_TIMER);
    else writer.byte(later > 0 ? LATER : EARLIER).uint(Math.abs(later));
  }

  #readWake(reader: Reader): void {
    const how = reader.byte();
    if (how > EARLIER) throw new CodecError(`a timer that is neither earlier nor later: ${how}`);
    if (how === NO_TIMER) return void (this.#wakeAtMs = 0);
    const wakeAtMs = this.#wakeAtMs + (how === LATER ? 1 : -1) * reader.uint();
    if (!(wakeAtMs >= 0 && Number.isSafeInteger(wakeAtMs))) throw new CodecError("a timer is at no time");
    this.#wakeAtMs = wakeAtMs;
  }
}

function isAt(bytes: Uint8Array, from: number, part: Uint8Array): boolean {
  for (let i = 0; i < part.length; i++) if (bytes[from + i] !== part[i]) return false;
  return true;
}
