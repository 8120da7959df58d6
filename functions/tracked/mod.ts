/**
 * Tracked structures: fields of a Session class for which a checkpoint holds only what changed. After CESSNA's
 * checkpointable data structures (Software Isolated CESSNA, section 6.2).
 *
 * For apps: the factories `value`, `map`, `list`, `bytes`, `grid` and `nested`, and their types (functions/mod.ts). For
 * the code that runs a session: {@link SessionState}. Nothing in this folder reaches node: or npm: imports, for it is
 * part of each app's bundle.
 */
export { bytes } from "./bytes.ts";
export { grid } from "./grid.ts";
export { list } from "./list.ts";
export { map } from "./map.ts";
export { nested } from "./nested.ts";
export type { Held } from "./owned.ts";
export { isPart, type Part, type Tracked } from "./part.ts";
export { mergeState, SessionState } from "./state.ts";
export { StateSegments } from "./state_segments.ts";
export type {
  CellType,
  GridRow,
  Put,
  TrackedBytes,
  TrackedGrid,
  TrackedKey,
  TrackedList,
  TrackedMap,
  TrackedNested,
  TrackedValue,
} from "./structures.ts";
export { value } from "./value.ts";
