/** Homes of stateful sessions: what sites say to each other about them. */
import fc from "fast-check";
import { decodeLogPacket, encodeLogPacket, type LogPacket } from "../../functions/sessions/log/packet.ts";
import { CodecError } from "../../store/model/codec.ts";
import { anyPacket } from "../functions/sessions/log/packet_arbitrary.ts";
import { mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const CORPUS = 500;

/** Packets of homes, keepers and the arbiter. */
export const homes: Target = {
  name: "homes",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const corpus = fc.sample(anyPacket, { numRuns: CORPUS, seed }).map(encodeLogPacket);
    return {
      attempt(dice) {
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let packet: LogPacket;
        try {
          packet = decodeLogPacket(mutant);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        if (!same(encodeLogPacket(packet), mutant)) throw new Finding(`another form was read: ${mutant}`);
        return "canonical";
      },
    };
  },
};
