import assert from "node:assert/strict";
import { DiskRoom } from "./disk_room.ts";

const MIB = 1024 * 1024;

/** A disk with a database that never gives room back to it. */
class Disk {
  rowBytes = 0;
  fileBytes = 0;
  constructor(readonly totalBytes: number, public othersBytes = 0) {}

  get freeBytes(): number {
    return this.totalBytes - this.fileBytes - this.othersBytes;
  }

  put(bytes: number): void {
    this.rowBytes += bytes;
    this.fileBytes = Math.max(this.fileBytes, this.rowBytes * 1.4);
    assert.ok(this.freeBytes > 0, "the disk is full");
  }

  evictTo(bytes: number): void {
    this.rowBytes = Math.min(this.rowBytes, bytes);
  }
}

/** Reads bring rows for ever; the site looks at its disk after each step. */
function fill(room: DiskRoom, disk: Disk, steps: number, stepBytes: number): number {
  let allowed = Infinity;
  for (let i = 0; i < steps; i++) {
    disk.put(stepBytes);
    allowed = room.after(disk);
    if (disk.rowBytes > allowed) disk.evictTo(allowed * 0.9);
  }
  return allowed;
}

Deno.test("a site that is allowed more than its disk has never fills it by reads, and holds most of what fits (R1, R2)", () => {
  for (const totalMib of [30, 200, 2_000, 20_000]) {
    const disk = new Disk(totalMib * MIB);
    const allowed = fill(new DiskRoom(1 << 30), disk, 20_000, MIB / 2);
    const fits = Math.min(1 << 30, disk.totalBytes / 1.4);
    assert.ok(allowed > fits * 0.5, `${allowed} of ${fits} that would fit`);
  }
});

Deno.test("who shares a full disk gives back once, not more and more (R2), and gets it back (R3)", () => {
  const room = new DiskRoom(1 << 30), disk = new Disk(1000 * MIB);
  disk.put(100 * MIB);
  disk.othersBytes = disk.freeBytes - 10 * MIB;
  const allowed = room.after(disk);
  assert.equal(allowed, 80 * MIB);
  for (let i = 0; i < 100; i++) assert.equal(room.after(disk), allowed);
  disk.othersBytes = 0;
  for (let i = 0; i < 10; i++) room.after(disk);
  assert.equal(room.after(disk), 1 << 30);
});

Deno.test("a site with room is bounded by its file alone (R1)", () => {
  const disk = new Disk(2 ** 40);
  assert.equal(fill(new DiskRoom(50 * MIB), disk, 1_000, MIB), 50 * MIB);
});
