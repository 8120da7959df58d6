/** Stateful sessions: frames, and what either side of a channel makes of a stream of them that nobody honest sends. */
import fc from "fast-check";
import {
  decodeToHome,
  decodeToHost,
  encodeToHome,
  encodeToHost,
  HomeSide,
  HostSide,
} from "../../functions/sessions/attach/mod.ts";
import type { PeerInput } from "../../functions/sessions/attach/mod.ts";
import { encodeKept, tag } from "../../functions/sessions/attach/frame_bytes.ts";
import { CodecError } from "../../store/model/codec.ts";
import { anyToHome, anyToHost } from "../functions/sessions/attach/frame_arbitrary.ts";
import { End, HandClock, hello, keyOf } from "../functions/sessions/attach/peer_pair.ts";
import { type Dice, mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const CORPUS = 500;

const toHome = (seed: number) => fc.sample(anyToHome, { numRuns: CORPUS, seed }).map(encodeToHome);
const toHost = (seed: number) => fc.sample(anyToHost, { numRuns: CORPUS, seed }).map(encodeToHost);

/** Frames of both directions. */
export const sessionFrames: Target = {
  name: "session frames",
  says: "refused as message_malformed, or in their one form",
  reaches: ["message_malformed", "canonical"],
  quick: 5_000,
  open(seed) {
    const sides = [
      { corpus: toHome(seed), again: (bytes: Uint8Array) => encodeToHome(decodeToHome(bytes)) },
      { corpus: toHost(seed), again: (bytes: Uint8Array) => encodeToHost(decodeToHost(bytes)) },
    ] as const;
    return {
      attempt(dice) {
        const { corpus, again } = dice.pick(sides);
        const mutant = Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
        let bytes: Uint8Array;
        try {
          bytes = again(mutant);
        } catch (error) {
          if (error instanceof CodecError) return error.code;
          throw error;
        }
        if (!same(bytes, mutant)) throw new Finding(`another form was read: ${mutant}`);
        return "canonical";
      },
    };
  },
};

/** What an attacker says next: garbage, a frame out of place, or one that fits. */
function said(dice: Dice, corpus: readonly Uint8Array<ArrayBuffer>[], next: number): Uint8Array {
  const kind = dice.below(10);
  if (kind < 2) return Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
  if (kind < 4) return dice.pick(corpus);
  if (kind < 5) return encodeToHome({ kind: "ack", received: dice.below(4) });
  return encodeKept({ sequence: next, received: dice.below(8) === 0 ? 1 : 0, tagged: tag("evil") });
}

/** The hello of a peer of its own, or one that lies. */
function greeting(dice: Dice): Uint8Array {
  const id = dice.pick(["honest", "own", "nobody"]);
  const key = keyOf(dice.pick(["own", id === "honest" ? "forged" : id]));
  const counts = { epoch: dice.below(3), received: dice.below(4), first: 1 + dice.below(4) };
  const isNew = dice.below(3) === 0;
  const named = isNew ? {} : { identity: { id, key }, ...counts };
  const bytes = encodeToHome(
    hello({ ...named, instance: 1 + dice.below(3), attempt: 1 + dice.below(5) + dice.below(3) * 2 ** 24 }),
  );
  return dice.below(6) === 0 ? Uint8Array.from(mutateBytes(dice, bytes)) : bytes;
}

/** A session with an honest peer, and one who has a peer of his own there and says what he likes, on many channels. */
export const lyingHosts: Target = {
  name: "lying hosts",
  says:
    "are refused or have their effect on their own peers; the honest peer's messages and outputs are as they were",
  reaches: ["refused", "heard"],
  quick: 3_000,
  open(seed) {
    const corpus = toHome(seed);
    return {
      attempt(dice) {
        const clock = new HandClock();
        const events: PeerInput[] = [];
        let ids = 0;
        const side = new HomeSide({
          clock,
          deliver: (event) => void events.push(event),
          acknowledge: () => {},
          newId: () => `new${++ids}`,
          keysOf: (id) => [keyOf(id)],
          outrun: () => {},
        });
        const peer = { kind: "client", sent: 0, received: 0, isClosed: false } as const;
        side.opened({ epoch: 1, peers: [{ ...peer, id: "honest" }, { ...peer, id: "own" }], outputs: [] });
        const heard: string[] = [];
        const honest = new End();
        const host = new HostSide({
          kind: "client",
          instance: 99,
          clock,
          saved: {
            identity: { id: "honest", key: keyOf("honest") },
            epoch: 1,
            received: 0,
            first: 1,
            messages: [],
          },
          listener: {
            message: (text) => void heard.push(String(text)),
            lost: (why) => {
              throw new Finding(`the honest peer lost its channel: ${JSON.stringify(why)}`);
            },
            closed: (end) => {
              throw new Finding(`the honest peer was ended: ${JSON.stringify(end)}`);
            },
          },
        });
        const toHomeEnd = new End();
        const reader = host.connected(toHomeEnd);
        honest.to = reader;
        toHomeEnd.to = side.accept(honest, "client");
        for (const bytes of toHomeEnd.sent) toHomeEnd.to.frame(bytes);
        let outcome = "heard", sent = 0;
        for (let channels = 1 + dice.below(4); channels > 0; channels--) {
          const end = new End();
          const line = side.accept(end, "client");
          const isPolite = dice.below(3) === 0;
          const instance = 1_000 * channels + dice.below(1_000);
          line.frame(isPolite ? encodeToHome(hello({ instance })) : greeting(dice));
          release(side, events, dice, sent);
          for (let i = 1; i <= 1 + dice.below(8); i++) {
            line.frame(
              isPolite
                ? encodeKept({ sequence: i, received: 0, tagged: tag("evil") })
                : said(dice, corpus, i),
            );
          }
          if (end.closed !== null) outcome = "refused";
          else if (dice.below(2) === 0) line.broken();
          host.send(`honest ${++sent}`);
          release(side, events, dice, sent);
          clock.turn(dice.below(200));
        }
        if (heard.length !== sent || heard.some((text, i) => text !== `to honest ${i + 1}`)) {
          throw new Finding(`the honest peer heard ${heard.join()}`);
        }
        clock.turn(60);
        if (host.acknowledged !== sent) {
          throw new Finding(`${host.acknowledged} of ${sent} were acknowledged`);
        }
        return outcome;
      },
    };
  },
};

/** All is done; the honest peer is answered, and nobody else speaks in its name. */
function release(side: HomeSide, events: PeerInput[], dice: Dice, sequence: number): void {
  for (const event of events.splice(0)) {
    const isHonest = event.kind !== "attach" && event.peer === "honest";
    if (isHonest && !(event.kind === "message" && String(event.message) === `honest ${sequence}`)) {
      throw new Finding(`in the name of the honest peer: ${JSON.stringify(event)}`);
    }
    const bytes = tag(`to honest ${sequence}`);
    side.released({
      done: [{
        event,
        rejected: dice.below(8) === 0 && !isHonest ? { code: "app_error", message: "" } : null,
      }],
      outputs: isHonest ? [{ to: "honest", sequence, bytes }] : [],
    });
  }
}

/** A host side to which a home, or a relay, says what it likes. */
export const lyingHomes: Target = {
  name: "lying homes",
  says: "are given up, or heard in order; what was sent and not acknowledged is kept",
  reaches: ["given up", "heard", "ended"],
  quick: 5_000,
  open(seed) {
    const corpus = toHost(seed);
    return {
      attempt(dice) {
        const clock = new HandClock();
        let outcome = "heard", last = 0;
        const host = new HostSide({
          kind: "client",
          instance: 1,
          clock,
          silentMs: 1_000,
          listener: {
            message: (_, sequence) => {
              if (sequence !== ++last) throw new Finding(`output ${sequence} after ${last - 1}`);
            },
            lost: () => {
              outcome = "given up";
            },
            closed: () => {
              outcome = "ended";
            },
          },
        });
        for (let channels = 1 + dice.below(4); channels > 0; channels--) {
          const reader = host.connected(new End());
          host.send("a");
          const epoch = dice.below(3);
          if (dice.below(5) > 0) {
            reader.frame(encodeToHost({
              kind: "welcome",
              identity: { id: dice.pick(["a", "a", "a", "b"]), key: keyOf("a") },
              epoch,
              received: dice.below(3),
            }));
          }
          for (let i = 1 + dice.below(8); i > 0; i--) {
            const fits = encodeKept({ sequence: last + 1, received: host.acknowledged, tagged: tag("o") });
            const mutant = () => Uint8Array.from(mutateBytes(dice, dice.pick(corpus), dice.pick(corpus)));
            reader.frame(dice.below(3) > 0 ? fits : dice.below(2) === 0 ? dice.pick(corpus) : mutant());
          }
          // What sends it away is an output too.
          const received = outcome === "ended" ? Math.min(host.received, last) : host.received;
          if (host.acknowledged > host.sent || received !== last) throw new Finding("it miscounts");
          const { messages = [], first = 1 } = host.save() ?? {};
          if (host.save() !== null && first + messages.length - 1 !== host.sent) {
            throw new Finding("it lost what it sent");
          }
          const before = outcome;
          reader.broken();
          if (outcome !== "ended") outcome = before;
          clock.turn(dice.below(100));
        }
        return outcome;
      },
    };
  },
};
