/** What the paper says (SessionStore, tables III and IV, sections VI.C.1 and VI.C.2). */

/** A cell of table III. */
export interface PaperCell {
  readonly kb: number;
  readonly ms: number;
}

/** Table III by kilobytes added to each comment; columns in the order of the paper, named as in table_3.ts. */
export const PAPER_TABLE_3: Readonly<Record<number, Readonly<Record<string, PaperCell>>>> = {
  0: {
    "full": { kb: 1_860, ms: 562.1 },
    "session-aware": { kb: 187.25, ms: 343.9 },
    "Δ-list": { kb: 141.22, ms: 288.52 },
    "sibling, nobody there": { kb: 14.2, ms: 15.9 },
    "sibling, 100 others there": { kb: 198, ms: 62.7 },
  },
  10: {
    "full": { kb: 22_700, ms: 2_240 },
    "session-aware": { kb: 2_560, ms: 534 },
    "Δ-list": { kb: 1_220, ms: 330.4 },
    "sibling, nobody there": { kb: 16.3, ms: 19.2 },
    "sibling, 100 others there": { kb: 1_160, ms: 76.86 },
  },
  100: {
    "full": { kb: 220_300, ms: 10_700 },
    "session-aware": { kb: 24_320, ms: 1_090 },
    "Δ-list": { kb: 15_900, ms: 741.51 },
    "sibling, nobody there": { kb: 13.1, ms: 20.8 },
    "sibling, 100 others there": { kb: 10_700, ms: 153 },
  },
};

/** Of section VI.C.2. */
export const PAPER_QUERIES = 2_203;
export const PAPER_ROWS_PER_QUERY = 13.4;

/** Comments that a column moved, by how much it grew when each became 100 KB longer: the paper names no number. */
export function paperComments(column: string): number {
  const plain = PAPER_TABLE_3[0]?.[column]?.kb ?? NaN, long = PAPER_TABLE_3[100]?.[column]?.kb ?? NaN;
  return (long - plain) * 1_000 / (100 * 1_024);
}

/** Table IV, in bytes a row of 1 KB, and the mean times of section VI.C.1. */
export const PAPER_ROWS: readonly {
  readonly system: string;
  readonly operation: "read" | "write";
  readonly from: string;
  readonly bytes: number | null;
  readonly ms: number | null;
}[] = [
  { system: "SessionStore", operation: "read", from: "cloud", bytes: 3_245.8, ms: 26.2 },
  { system: "SessionStore", operation: "read", from: "core-1", bytes: 1_620.7, ms: 4.65 },
  { system: "SessionStore", operation: "read", from: "edge-1", bytes: 0, ms: 0.9 },
  { system: "all", operation: "read", from: "", bytes: 0, ms: null },
  { system: "single", operation: "read", from: "", bytes: 1_120.7, ms: null },
  { system: "SessionStore", operation: "write", from: "", bytes: 2_346.8, ms: 0.73 },
  { system: "all", operation: "write", from: "", bytes: 6_372.4, ms: null },
  { system: "single", operation: "write", from: "", bytes: 1_213.6, ms: null },
];
