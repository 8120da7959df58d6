/**
 * Tracked structures: fields of a Session class of which a checkpoint holds what changed. After CESSNA's checkpointable
 * data structures (Software Isolated CESSNA, section 6.2).
 *
 * For apps: the factories `value`, `map`, `list`, `bytes`, `grid` and `nested`, and their types (functions/mod.ts).
 * For whoever runs a session: {@link SessionState}. Nothing in this folder reaches node: or npm: imports, for it is part
 * of each app's bundle.
 */
export { bytes, TrackedBytes } from "./bytes.ts";
export { type CellType, grid, type GridRow, TrackedGrid } from "./grid.ts";
export { list, TrackedList } from "./list.ts";
export { map, type TrackedKey, TrackedMap } from "./map.ts";
export { nested, type TrackedNested } from "./nested.ts";
export type { Container, Put } from "./container.ts";
export type { Held } from "./owned.ts";
export { isPart, type Kind, type Part, type TrackedPart } from "./part.ts";
export { mergeState, SessionState } from "./state.ts";
export { TrackedValue, value } from "./value.ts";
