/** Keys and the store's messages: one form each, and no failure but the reader's own. */
import fc from "fast-check";
import { CodecError } from "../../store/model/codec.ts";
import { keyBytes, KeyError, keyFromBytes, packKey, unpackKey } from "../../store/model/key.ts";
import { decodeMessage, encodeMessage, type Message } from "../../store/wire/message.ts";
import { decodeTuplePacket, encodeTuplePacket, type TuplePacket } from "../../store/owners/packet.ts";
import { anyPacket } from "../store/owners/packet_arbitrary.ts";
import { keyParts } from "../store/model/key_arbitrary.ts";
import { anyMessage } from "../store/wire/message_arbitrary.ts";
import { mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const CORPUS = 500;

/** Packed keys. */
export const keys: Target = {
  name: "keys",
  says: "refused as key_invalid, or in their one form",
  reaches: ["key_invalid", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(keyParts, { numRuns: CORPUS, seed }).map((parts) => keyBytes(packKey(parts)));
    return {
      attempt(dice) {
        const key = keyFromBytes(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let parts: ReturnType<typeof unpackKey>;
        try {
          parts = unpackKey(key);
        } catch (error) {
          if (error instanceof KeyError) return error.code;
          throw error;
        }
        if (packKey(parts) !== key) throw new Finding(`another form was read: ${JSON.stringify(key)}`);
        return "canonical";
      },
    };
  },
};

/** Messages between replicas, as a member of the cluster might send them. */
export const messages: Target = {
  name: "messages",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(anyMessage, { numRuns: CORPUS, seed }).map(encodeMessage);
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let message: Message;
        try {
          message = decodeMessage(mutant);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        if (!same(encodeMessage(message), mutant)) throw new Finding(`another form was read: ${mutant}`);
        return "canonical";
      },
    };
  },
};

/** What owners say to each other about tuples. */
export const packets: Target = {
  name: "packets",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(anyPacket, { numRuns: CORPUS, seed }).map(encodeTuplePacket);
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let packet: TuplePacket;
        try {
          packet = decodeTuplePacket(mutant);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        if (!same(encodeTuplePacket(packet), mutant)) throw new Finding(`another form was read: ${mutant}`);
        return "canonical";
      },
    };
  },
};
