/**
 * A disk in virtual time: rows in memory, each commit after the time of a sync. Ours and the baselines use the
 * same. Long values are kept once per length: a run holds gigabytes otherwise, and nobody reads them.
 */
import { MemoryRows, MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { DiskCommit } from "../../../store/model/ports.ts";
import type { Row } from "../../../store/model/row.ts";
import type { World } from "../../sim/world.ts";
import { COMMIT_MS } from "./topology.ts";

/** Longer than any value whose content matters to the store: its system rows and merge values. */
const LONG_BYTES = 8 * 1024;
const LONG = new Map<number, Uint8Array<ArrayBuffer>>();

/** A value of a length, the same one each time. */
export function longValue(bytes: number): Uint8Array<ArrayBuffer> {
  const known = LONG.get(bytes) ?? new Uint8Array(bytes).fill(120);
  LONG.set(bytes, known);
  return known;
}

class SharingRows extends MemoryRows {
  override put(row: Row): void {
    const { value } = row;
    super.put(value === null || value.length < LONG_BYTES ? row : { ...row, value: longValue(value.length) });
  }
}

/** The disk of one of our sites. */
export class VirtualDisk extends MemoryStorage {
  readonly #world: World;

  constructor(world: World) {
    super(new SharingRows());
    this.#world = world;
  }

  override async commit(commit: DiskCommit): Promise<void> {
    await this.#world.sleep(COMMIT_MS);
    await super.commit(commit);
  }
}
