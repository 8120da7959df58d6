/** Messages between the site's thread and the thread that copies its databases (snapshot.ts). */

/** A database, and the path of its copy. */
export interface CopiedDatabase {
  readonly from: string;
  readonly to: string;
}

/** Order to the copying thread. */
export interface CopyOrder {
  readonly databases: readonly CopiedDatabase[];
  readonly gate: SharedArrayBuffer;
}

/** Message of the copying thread. */
export type CopyNews =
  | { readonly kind: "opened" }
  | { readonly kind: "copied"; readonly to: string; readonly pages: number }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly why: string };

/** Cells of the gate: the moment is now; all databases are being read as of it; that was tried; it is given up. */
export const GATE = { go: 0, begun: 1, over: 2, stop: 3 } as const;
export const GATE_BYTES = 4 * Int32Array.BYTES_PER_ELEMENT;
