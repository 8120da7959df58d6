import { strict as assert } from "node:assert";
import { type Key, packKey } from "../../store/model/key.ts";
import type { DiskCommit } from "../../store/model/ports.ts";
import type { Position, Row } from "../../store/model/row.ts";
import { openSqlite } from "./sqlite.ts";

const MIB = 1 << 20;
let position = 0;

function commitOf(name: number, bytes: number): DiskCommit {
  const row = {
    ...{ key: packKey(["k", name]), position: ++position as Position, clock: position, replica: 1, known: 0 },
    ...{ expiresAtMs: 0, value: new Uint8Array(bytes).fill(name) },
  } as Row;
  return { rows: [row], drop: [], records: new Map() };
}

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-sqlite-" });
  try {
    await run(`${folder}/rows`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("sqlite: the log is begun anew as its pages have moved, and is as long as a few commits (Q7)", () =>
  withFolder(async (folder) => {
    const storage = openSqlite(folder);
    let longest = 0;
    for (let i = 0; i < 60; i++) {
      await storage.commit(commitOf(i % 10, MIB));
      longest = Math.max(longest, Deno.statSync(`${folder}/rows.db-wal`).size);
    }
    await storage.close();
    assert.ok(longest < 8 * MIB, `${longest} bytes`);
  }));

Deno.test("sqlite: a commit that waits for pages to move is done, also where the storage is closed meanwhile (Q7)", () =>
  withFolder(async (folder) => {
    for (let round = 0; round < 6; round++) {
      const storage = openSqlite(folder);
      // In one round or another the last of them leaves the log so long that its pages move.
      for (let i = 0; i <= round; i++) await storage.commit(commitOf(10 * round + i, MIB));
      const last = storage.commit(commitOf(100 + round, 1_000));
      const closed = storage.close();
      await last;
      await closed;
      const again = openSqlite(folder);
      assert.equal((await again.get(packKey(["k", 100 + round]) as Key))?.value?.length, 1_000);
      await again.close();
    }
  }));

Deno.test("sqlite: a large commit leaves everything else its turns, reads too, and is whole in the end, also where the storage is closed meanwhile (Q8)", () =>
  withFolder(async (folder) => {
    const many = (value: number, count = 4_000): DiskCommit => ({
      rows: Array.from({ length: count }, (_, i) => commitOf(i, 500).rows[0] as Row)
        .map((row) => ({ ...row, value: new Uint8Array(500).fill(value) })),
      drop: [],
      records: new Map(),
    });
    const storage = openSqlite(folder);
    await storage.commit(many(1));
    let turns = 0, isOver = false;
    const seen = new Set<number>();
    const other = async () => {
      turns++;
      const [row] = await storage.getMany([packKey(["k", turns % 4_000])]);
      const values = new Set(row?.value);
      assert.equal(values.size, 1, "each row is whole");
      seen.add([...values][0] ?? 0);
      if (!isOver) setImmediate(() => void other());
    };
    void other();
    await storage.commit(many(2));
    isOver = true;
    assert.ok(turns >= 5, `others had ${turns} turns`);
    assert.ok(seen.isSubsetOf(new Set([1, 2])));
    const last = storage.commit(many(3));
    const closed = storage.close();
    await last;
    await closed;
    const again = openSqlite(folder);
    const rows = await again.scan({ start: packKey(["k"]), end: packKey(["l"]) });
    assert.deepEqual([rows.length, new Set(rows.map(({ value }) => value?.[0]))], [4_000, new Set([3])]);
    await again.close();
  }));
