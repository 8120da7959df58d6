/**
 * The handshake over a wire: each side proves that it holds the cluster's secret before the other gives it
 * anything but memory for one short message (docs/protocol/frames.md).
 *
 * dialer: hello → acceptor: hello, proof → dialer: proof → acceptor: verdict.
 *
 * HK1  No side sends or takes a record before the other side's proof was right.
 * HK2  Both sides draw a fresh nonce per connection, so that a recorded handshake proves nothing.
 * HK3  Whether a site is admitted is decided after its proof: strangers learn nothing but that we exist.
 * HK4  A cluster whose secret is being changed has more than one secret: the acceptor proves one of its own, the dialer
 *      takes any that it has too, and both go on with that one.
 */
import { randomBytes } from "node:crypto";
import * as hello from "./hello.ts";
import { HANDSHAKE_BYTES_MAX } from "./limits.ts";
import { deriveKeys, equalProof, transcript, verdictProof } from "./proof.ts";
import type { Wire } from "./wire.ts";

export interface SiteIdentity {
  readonly site: string;
  readonly incarnation: string;
  readonly boot: Uint8Array;
}

/** Result of a finished handshake: the other site, and the keys of the records. */
export interface Acquaintance extends SiteIdentity {
  readonly sendKey: Uint8Array;
  readonly receiveKey: Uint8Array;
  /** Bytes that came after the handshake's last message. */
  readonly leftover: Uint8Array;
}

/** Error of a handshake that failed: garbage, a stranger, a wrong version, a refusal. */
export class HandshakeError extends Error {
  override readonly name = "HandshakeError";
  /** @param refused true where the other side, whose proof was right, does not admit us. */
  constructor(message: string, readonly refused = false) {
    super(message);
  }
}

/** Reads and writes the handshake's messages: length (2) · body. */
class Messages {
  readonly #wire: Wire;
  #bytes = new Uint8Array(0);

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  get leftover(): Uint8Array {
    return this.#bytes;
  }

  async send(body: Uint8Array): Promise<void> {
    const message = new Uint8Array(2 + body.length);
    new DataView(message.buffer).setUint16(0, body.length);
    message.set(body, 2);
    await this.#wire.write(message);
  }

  async receive(): Promise<Uint8Array> {
    const into = new Uint8Array(HANDSHAKE_BYTES_MAX);
    for (;;) {
      const [high, low] = this.#bytes;
      if (high !== undefined && low !== undefined) {
        const length = 256 * high + low;
        if (length < 1 || length > HANDSHAKE_BYTES_MAX) {
          throw new HandshakeError(`a message of ${length} bytes, or no handshake at all`);
        }
        if (this.#bytes.length >= 2 + length) {
          const body = this.#bytes.slice(2, 2 + length);
          this.#bytes = this.#bytes.slice(2 + length);
          return body;
        }
      }
      const count = await this.#wire.read(into);
      if (count === null) throw new HandshakeError("the other side closed during the handshake");
      const joined = new Uint8Array(this.#bytes.length + count);
      joined.set(this.#bytes);
      joined.set(into.subarray(0, count), this.#bytes.length);
      this.#bytes = joined;
    }
  }
}

/** Runs the dialer's side of a handshake. @throws HandshakeError, or the wire's error when it closes. */
export async function introduce(
  wire: Wire,
  options: { self: SiteIdentity; secrets: readonly Uint8Array[]; role: hello.DialerRole; target: string },
): Promise<Acquaintance> {
  const { self, secrets } = options;
  const messages = new Messages(wire);
  const mine = hello.encodeDialerHello({
    versionLowest: hello.VERSION_LOWEST,
    versionHighest: hello.VERSION_HIGHEST,
    nonce: randomBytes(hello.NONCE_BYTES),
    role: options.role,
    ...self,
    target: options.target,
  });
  await messages.send(mine);
  const theirs = hello.decodeAcceptorHello(await messages.receive());
  if (!theirs) throw new HandshakeError("a malformed hello");
  const digest = transcript(mine, theirs.covered);
  const keys = secrets.map((secret) => deriveKeys(secret, digest))
    .find(({ acceptorProof }) => equalProof(acceptorProof, theirs.proof)); // HK4
  if (keys === undefined) throw new HandshakeError("a wrong proof: another cluster's secret");
  const { version, site } = theirs.hello;
  if (version < hello.VERSION_LOWEST || version > hello.VERSION_HIGHEST) {
    throw new HandshakeError(`version ${version} was not offered`);
  }
  if (site !== options.target) throw new HandshakeError(`site ${JSON.stringify(site)} answers there`);
  await messages.send(hello.encodeDialerProof(keys.dialerProof));
  const answer = hello.decodeVerdict(await messages.receive());
  if (!answer || !equalProof(verdictProof(keys.verdictKey, answer.covered), answer.proof)) {
    throw new HandshakeError("a malformed or forged verdict");
  }
  if (!answer.verdict.admitted) throw new HandshakeError(`refused: ${answer.verdict.reason}`, true);
  return {
    ...theirs.hello,
    sendKey: keys.dialerKey,
    receiveKey: keys.acceptorKey,
    leftover: messages.leftover,
  };
}

export interface DialingSite extends SiteIdentity {
  readonly role: hello.DialerRole;
}

export interface AcceptorPorts {
  /** Called with the dialer's claims, before its proof; may throw a HandshakeError. */
  readonly claimed: (arrival: DialingSite) => Promise<void>;
  /** Returns the secret that is proved to the dialer (HK4). */
  readonly secretFor: (arrival: DialingSite) => Uint8Array;
  /**
   * Judges the dialer after its proof: null admits, a text is the reason not to. The connection must be taken as made
   * at once.
   */
  readonly judge: (arrival: DialingSite) => string | null;
}

/** Runs the acceptor's side of a handshake. @throws HandshakeError, or the wire's error when it closes. */
export async function receiveIntroduction(
  wire: Wire,
  options: { self: SiteIdentity; ports: AcceptorPorts },
): Promise<{ arrival: DialingSite; acquaintance: Acquaintance }> {
  const { self, ports } = options;
  const messages = new Messages(wire);
  const theirs = await messages.receive();
  const arrival = hello.decodeDialerHello(theirs);
  if (!arrival) throw new HandshakeError("a malformed hello, or no handshake at all");
  const version = Math.min(arrival.versionHighest, hello.VERSION_HIGHEST);
  if (version < Math.max(arrival.versionLowest, hello.VERSION_LOWEST)) {
    throw new HandshakeError(
      `versions ${arrival.versionLowest} to ${arrival.versionHighest} are not spoken here`,
    );
  }
  if (arrival.target !== self.site) {
    throw new HandshakeError(`it looks for site ${JSON.stringify(arrival.target)}`);
  }
  if (arrival.site === self.site) throw new HandshakeError("it has this site's own id");
  await ports.claimed(arrival);
  const mine = hello.encodeAcceptorHello({ version, nonce: randomBytes(hello.NONCE_BYTES), ...self });
  const keys = deriveKeys(ports.secretFor(arrival), transcript(theirs, mine));
  const answer = new Uint8Array(mine.length + keys.acceptorProof.length);
  answer.set(mine);
  answer.set(keys.acceptorProof, mine.length);
  await messages.send(answer);
  const proof = hello.decodeDialerProof(await messages.receive());
  if (!proof || !equalProof(keys.dialerProof, proof)) throw new HandshakeError("a wrong proof: a stranger");
  const reason = ports.judge(arrival);
  const verdict = hello.encodeVerdict({ admitted: reason === null, reason: reason ?? "" });
  const message = new Uint8Array(verdict.length + 32);
  message.set(verdict);
  message.set(verdictProof(keys.verdictKey, verdict), verdict.length);
  await messages.send(message);
  if (reason !== null) {
    await wire.landed();
    throw new HandshakeError(`not admitted: ${reason}`, true);
  }
  return {
    arrival,
    acquaintance: {
      ...arrival,
      sendKey: keys.acceptorKey,
      receiveKey: keys.dialerKey,
      leftover: messages.leftover,
    },
  };
}
