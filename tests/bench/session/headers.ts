/**
 * What the data plane adds to a message: the bytes of its frames but for the payload (docs/protocol/session-frames.md),
 * and where hosts hold the log those that an output carries of it (docs/protocol/hosts.md).
 */
import { type From, Session } from "../../../functions/class/session.ts";
import { encodeToHome, encodeToHost } from "../../../functions/sessions/attach/mod.ts";
import { encodeKept } from "../../../functions/sessions/attach/frame_bytes.ts";
import { SealedSeries, type SeriesStart } from "../../../functions/sessions/sealed/mod.ts";
import { NO_HEAD, wrapPiece } from "../../../functions/sessions/serve/pieces.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, record } from "../record.ts";

/** From numbers of one digit to those of a session that has run for days. */
const SEQUENCES = [1, 100, 10_000, 1_000_000];
/** As sites draw them. */
const RECEIVER = "peer-00-0000", OTHER = "peer-00-0001";
const SAID = "a message";
/** Its payload stands in the log with a flag, and a length. */
const CONTENT_BYTES = SAID.length + 2;
/** Turns of other peers since the last output to the receiver. */
const OTHERS = [0, 1, 4, 16];
const START: SeriesStart = {
  secret: new Uint8Array(32),
  of: { name: { app: "bench", class: "counter", id: "one" }, receiver: RECEIVER },
  epoch: 1,
  salt: new Uint8Array(16),
};

class Counter extends Session {
  n = 0;

  override onMessage(_: string | Uint8Array, from: From): void {
    from.send(`${++this.n}`);
  }
}

/** Bytes of an output beyond its payload, when so many turns of another peer came before the receiver's own. */
function withIncrement(others: number): Promise<number> {
  return inMacrotask(() => {
    const solo = new Solo(Counter).open();
    for (const id of [RECEIVER, OTHER]) solo.deliver({ kind: "attach", peer: { kind: "client", id } });
    // Both have been heard before.
    for (const peer of [RECEIVER, OTHER]) solo.deliver({ kind: "message", peer, message: SAID });
    const before = solo.commits.length;
    for (let turn = 0; turn < others; turn++) solo.deliver({ kind: "message", peer: OTHER, message: SAID });
    solo.deliver({ kind: "message", peer: RECEIVER, message: SAID });
    const pieces = solo.commits.map(({ first, count, entries }) => (
      { epoch: 1, first, count, wakeAtMs: 0, bytes: wrapPiece(NO_HEAD, entries) }
    ));
    const log = {
      seed: new Uint8Array(32),
      version: "v1",
      base: null,
      parts: [],
      pieces: pieces.slice(0, before),
    };
    const output = solo.commits.at(-1)?.outputs.at(-1);
    if (output === undefined) throw new Error("a message was not answered");
    const increment = SealedSeries.whole(START, log).next(pieces.slice(before));
    return encodeKept({ ...output, received: 2, tagged: output.bytes, increment }).length -
      output.bytes.length + 1;
  });
}

/** The figures; the same in a quick run. */
export async function headers({ say }: BenchContext): Promise<BenchRecord[]> {
  const payload = new TextEncoder().encode(SAID);
  const data = (n: number) => ({ sequence: n % 32, received: n % 256, payload });
  const there = SEQUENCES.map((n) => encodeToHome({ kind: "message", ...data(n) }).length - payload.length);
  const back = SEQUENCES.map((n) =>
    encodeToHost({ kind: "output", increment: null, ...data(n) }).length - payload.length
  );
  const whole = await Promise.all(OTHERS.map(withIncrement));
  // Whatever was said is in the log, and counted apart.
  const told = whole.map((bytes, i) => bytes - CONTENT_BYTES * ((OTHERS[i] ?? 0) + 1));
  const perTurn = told.flatMap((bytes, i) => i === 0 ? [] : [(bytes - (told[0] ?? 0)) / (OTHERS[i] ?? 1)]);
  say(`headers: ${there} bytes to the home, ${back} to the host`);
  say(
    `where hosts hold the log, to the host, after ${OTHERS} turns of another since the last output: ${told} bytes, ` +
      `and with what was said in them ${whole}`,
  );
  const most = (value: number) => ({ of: "median", op: "<=", value }) as const;
  const of = { bench: "session", unit: "bytes" };
  const hosts = "header of an output, edge to host, hosts hold the log";
  return [
    record({ ...of, case: "header of a message, host to edge", samples: there, target: most(4) }),
    record({
      ...of,
      case: "header of a message, edge to host, without increments",
      samples: back,
      target: most(16),
    }),
    // 20 and 4 before each entry held all of its check (docs/decisions/33-all-of-the-check.md).
    record({ ...of, case: `${hosts}: one turn`, samples: [told[0] ?? NaN], target: most(28) }),
    record({ ...of, case: `${hosts}: each further turn`, samples: perTurn, target: most(12) }),
    record({ ...of, case: `${hosts}: one turn, with what was said in it`, samples: [whole[0] ?? NaN] }),
  ];
}
