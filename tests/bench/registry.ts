/**
 * The benchmarks there are. To add one: write `NAME.ts` beside this file with `export const bench: Bench`, and
 * a line here.
 */
import type { Bench } from "./bench.ts";

/** By name; each module is loaded only when its benchmark runs. */
export const BENCHES: Readonly<Record<string, () => Promise<{ readonly bench: Bench }>>> = {
  board: () => import("./board.ts"),
  handoff: () => import("./handoff.ts"),
  http: () => import("./http.ts"),
  link: () => import("./link.ts"),
  overload: () => import("./overload.ts"),
  owners: () => import("./owners.ts"),
  scale: () => import("./scale.ts"),
  session: () => import("./session.ts"),
  storage: () => import("./storage.ts"),
  paper: () => import("./paper.ts"),
  store: () => import("./store.ts"),
  telemetry: () => import("./telemetry.ts"),
};
