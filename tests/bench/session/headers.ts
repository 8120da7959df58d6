/** What the data plane adds to a message: the bytes of its frames but for the payload (docs/protocol/session-frames.md). */
import { encodeToHome, encodeToHost } from "../../../functions/peers/mod.ts";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, record } from "../record.ts";

/** From numbers of one digit to those of a session that has run for days. */
const SEQUENCES = [1, 100, 10_000, 1_000_000];

/** The figures; the same in a quick run. */
export function headers({ say }: BenchContext): Promise<BenchRecord[]> {
  const payload = new TextEncoder().encode("a message");
  const data = (n: number) => ({ sequence: n % 32, received: n % 256, payload });
  const there = SEQUENCES.map((n) => encodeToHome({ kind: "message", ...data(n) }).length - payload.length);
  const back = SEQUENCES.map((n) =>
    encodeToHost({ kind: "output", increment: null, ...data(n) }).length - payload.length
  );
  say(`headers: ${there} bytes to the home, ${back} to the host`);
  const most = (value: number) => ({ of: "median", op: "<=", value }) as const;
  const of = { bench: "session", unit: "bytes" };
  return Promise.resolve([
    record({ ...of, case: "header of a message, host to edge", samples: there, target: most(4) }),
    record({
      ...of,
      case: "header of a message, edge to host, without increments",
      samples: back,
      target: most(16),
    }),
  ]);
}
