/** Sizes of session tokens: by the depth of the tree, in trees of ten and of ten thousand sites. */
import { deriveKeyRing, sealToken } from "../../../store/session/token.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { type BenchRecord, record } from "../record.ts";

/** A session of ten years from now, in a journal that has seen 10¹² changes. */
const NOW_MS = CLOCK_EPOCH_MS + 10 * 365 * 24 * 3_600_000;
const POSITION = 1e12;

function tokenBytes(depth: number, replica: number): number {
  const ring = deriveKeyRing([new Uint8Array(32).fill(1)]);
  const state: TokenState = {
    session: new Uint8Array(16).fill(2),
    sequence: 1_000_000,
    replica,
    clock: (NOW_MS - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS,
    path: Array.from({ length: depth }, (_, j) => POSITION - j),
    open: false,
  };
  return sealToken(state, ring, { nowMs: NOW_MS, random: { bytes: (n) => new Uint8Array(n).fill(3) } })
    .length;
}

/** The larger of the two numbers of incarnations is that of 10,000 sites, each started 100 times. */
export function tokenSizes(): BenchRecord[] {
  return [2, 3, 4, 5, 6].flatMap((depth) =>
    [["10 sites", 10], ["10,000 sites", 1_000_000]].map(([sites, replica]) =>
      record({
        bench: "store",
        case: `token, ${depth} levels, ${sites}`,
        unit: "bytes",
        samples: [tokenBytes(depth, Number(replica))],
        target: { of: "median", op: "<=", value: 256 },
      })
    )
  );
}
