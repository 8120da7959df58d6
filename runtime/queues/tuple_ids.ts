/** Ids of the tuples of messages that have a name: the same at all sites. No drawn id begins as they do. */
import { createHash } from "node:crypto";
import type { TupleId } from "../../store/owners/packet.ts";

/** Bytes of a digest that stands for a name: two of 10^15 names are alike once in 10^13. */
const ID_BYTES = 18;

const shortened = (digest: Uint8Array): string =>
  digest.subarray(0, ID_BYTES).toBase64({ alphabet: "base64url", omitPadding: true });

/** Returns the tuple's id of a message with an id of its producer's. */
export const tupleIdOf = (topic: string, id: string): TupleId =>
  `=${shortened(createHash("sha256").update(topic).update("\0").update(id).digest())}`;

/**
 * Returns the tuple's id of a message of a stateful session.
 *
 * @param key the name of the effect that the message is part of, among all of the cluster's.
 * @param place the message's place in that effect.
 */
export const tupleIdOfSession = (key: string, place: number): TupleId =>
  `~${shortened(createHash("sha256").update(key).update("\0").update(`${place}`).digest())}`;
