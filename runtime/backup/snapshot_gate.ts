/** What the site's thread and the thread that copies its databases (snapshot.ts) say to each other. */

/** One database, and where its copy is to be. */
export interface CopiedDatabase {
  readonly from: string;
  readonly to: string;
}

/** What the copying thread is given. */
export interface CopyOrder {
  readonly databases: readonly CopiedDatabase[];
  readonly gate: SharedArrayBuffer;
}

/** What it tells. */
export type CopyNews =
  | { readonly kind: "opened" }
  | { readonly kind: "copied"; readonly to: string; readonly pages: number }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly why: string };

/** Cells of the gate: the moment is now; all databases are being read as of it; that was tried; it is given up. */
export const GATE = { go: 0, begun: 1, over: 2, stop: 3 } as const;
export const GATE_BYTES = 4 * Int32Array.BYTES_PER_ELEMENT;
