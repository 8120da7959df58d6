/** Payloads that are read for owners who lack them (store/owners/payloads.ts). */
import assert from "node:assert/strict";
import { TUPLES_WAITING_BYTES_MAX } from "../../../store/model/limits.ts";
import { Payloads } from "../../../store/owners/payloads.ts";
import { TupleTable } from "../../../store/owners/tuple_table.ts";

const BYTES = 1_000_000;

/** Tuples of which the disk has the payloads, one after the other as it is let. */
function disk(count: number) {
  const table = new TupleTable(), told: string[] = [], reads: (() => void)[] = [];
  const ids = Array.from({ length: count }, (_, i) => `${i}`);
  for (const id of ids) {
    table.add(id, {
      ...{
        topic: "mail",
        f: 1,
        version: 1,
        owners: ["a", "b"],
        former: [],
        gone: false,
        isUnsure: false,
        isRepeated: false,
      },
      ...{ dueMs: 0, note: "", bytes: BYTES, rememberUntilS: 0 },
    });
  }
  let underWay = 0, mostUnderWay = 0;
  const payloads = new Payloads({
    read: async () => {
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      await new Promise<void>((resolve) => reads.push(resolve));
      underWay--;
      return new Uint8Array(BYTES);
    },
    tuple: (id) => table.get(id),
    tell: (site, id) => void told.push(`${site} ${id}`),
    fail: (error) => assert.fail(`${error}`),
  });
  const settle = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  /** Lets reads end until none is under way. */
  const read = async () => {
    await settle();
    while (reads.length > 0) {
      reads.shift()?.();
      await settle();
    }
  };
  return { table, ids, told, payloads, read, mostUnderWay: () => mostUnderWay };
}

Deno.test("payloads for owners are read one at a time, and wait while half of the room is taken (P1)", async () => {
  const room = Math.ceil(TUPLES_WAITING_BYTES_MAX / 2 / BYTES),
    { table, ids, told, payloads, read, mostUnderWay } = disk(3 * room);
  for (const id of ids) payloads.want(id, "b");
  await read();
  assert.equal(mostUnderWay(), 1);
  assert.ok(payloads.bytes <= TUPLES_WAITING_BYTES_MAX / 2 + BYTES, `${payloads.bytes} bytes`);
  assert.ok(told.length >= room, `${told.length} are told`);
  // What has arrived makes room for others.
  for (let rounds = 0; told.length < ids.length; rounds++) {
    assert.ok(rounds < 10);
    for (const tuple of table.moving) payloads.set(tuple, null);
    assert.equal(payloads.bytes, 0);
    void payloads.readSome();
    await read();
  }
  assert.deepEqual(told, ids.map((id) => `b ${id}`));
});

Deno.test("who lacks a payload is told once it is there, if it is still to have it", async () => {
  const { table, told, payloads, read } = disk(3);
  for (const site of ["b", "stranger"]) payloads.want("0", site);
  payloads.want("1", "b");
  payloads.want("2", "b");
  (table.get("1") ?? assert.fail()).gone = true;
  table.delete(table.get("2") ?? assert.fail());
  await read();
  assert.deepEqual(told, ["b 0"]);
});
