/** Parts of states on a site's disk: taken, named by a base, read, dropped (functions/sessions/log/kept_parts.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../../runtime/storage/memory.ts";
import type { Base } from "../../../../functions/sessions/log/asks.ts";
import { GroupCommit } from "../../../../functions/sessions/log/group_commit.ts";
import { ENDS, KeptLog, PARTS } from "../../../../functions/sessions/log/kept_log.ts";
import { decodeEnd, KeptPartRows } from "../../../../functions/sessions/log/kept_parts.ts";
import { STATE_PARTS_MAX } from "../../../../functions/sessions/log/limits.ts";
import { keyOf } from "../../../../functions/sessions/log/name.ts";
import { markAfter, NO_STATE } from "../../../../functions/sessions/log/state_parts.ts";
import { packKey } from "../../../../store/model/key.ts";
import type { Clock } from "../../../../store/model/ports.ts";
import { prefixRange } from "../../../../store/model/range.ts";

const NAME = { app: "shop", class: "cart", id: "x" };
/** Three bytes each, so that two go at once. */
const part = (byte: number) => Uint8Array.of(byte, byte, byte);
const parts = (text: string) => [...text].map((digit) => part(Number(digit)));

function keeping() {
  const storage = new MemoryStorage(), clock = { turn: () => Promise.resolve() } as unknown as Clock;
  const disk = new GroupCommit({ storage, clock, fatal: (error) => assert.fail(error) }, 0);
  const rows = new KeptPartRows(disk, storage, 6);
  const head = { promised: 1, by: "a", aligned: 1, turn: 1, seed: new Uint8Array(32), version: "v" };
  const log = new KeptLog(NAME, head);
  const upload = (at: number, first: number, text: string) =>
    rows.upload(log, { at, first, parts: parts(text) });
  /** A base of all of these, of which an owner has the first `kept` already; `last` comes with it. */
  const named = (at: number, all: string, kept: number, last: string, of = all): boolean => {
    const state = markAfter(NO_STATE, parts(all));
    const base = { at, epoch: 1, state } as unknown as Base;
    const found = rows.named(log, base, markAfter(NO_STATE, parts(of.slice(0, kept))), parts(last));
    if (found === null) return false;
    Object.assign(log, { parts: found, base: { at, epoch: 1, wakeAtMs: 0, length: 0 } });
    log.setUpload(null);
    return true;
  };
  /** What the disk has of all states, by number; and what it says of their end. */
  const onDisk = async () => {
    await disk.durable();
    const found = await storage.scan(prefixRange(packKey([PARTS])));
    const end = await storage.get(keyOf(ENDS, NAME));
    return `${found.map(({ value }) => value?.[0]).join("")}${
      end?.value ? ` to ${decodeEnd(end.value)}` : ""
    }`;
  };
  const read = async (first: number) => (await rows.read(log, first))?.map(([byte]) => byte).join("") ?? null;
  return { rows, log, upload, named, onDisk, read, storage };
}

Deno.test("parts that are sent ahead are those of the base that names them, and no others (KP1)", async () => {
  const { upload, named, onDisk, read, log } = keeping();
  assert.equal(upload(5, 0, "12"), true);
  assert.equal(upload(5, 2, "3"), true);
  assert.equal(await read(0), "", "nobody has named them");
  assert.equal(named(5, "1234", 0, "4"), true);
  assert.equal(await onDisk(), "1234");
  assert.deepEqual([await read(0), await read(2), await read(4)], ["12", "34", ""]);
  assert.equal(upload(9, 4, "5"), true);
  assert.equal(named(9, "123456", 4, "6"), true, "it goes on from those here");
  assert.equal(await onDisk(), "123456");
  for (
    const [says, at, all, kept, last, of] of [
      ["another part", 12, "1234569", 6, "8", undefined],
      ["other parts before", 12, "1234567", 6, "7", "999999"],
      ["a part too few", 12, "12345678", 6, "7", undefined],
      ["of none, and without them", 12, "12", 0, "1", undefined],
    ] as const
  ) {
    assert.equal(named(at, all, kept, last, of), false, says);
    assert.equal(await onDisk(), "123456", says);
    assert.equal(log.upload, null);
  }
  assert.equal(named(12, "89", 0, "89"), true, "one that goes on from none takes the place of all");
  assert.equal(await onDisk(), "89");
  assert.equal(await read(0), "89");
});

Deno.test("of one base a part is taken once, of an earlier base none, and one for a later base begins anew (KP2, kept_log.ts L3)", async () => {
  const { upload, named, onDisk } = keeping();
  assert.equal(upload(5, 0, "12"), true);
  assert.equal(upload(5, 1, "23"), true, "one of them again");
  assert.equal(await onDisk(), "123 to 3");
  assert.equal(upload(5, 4, "5"), false, "others come before");
  assert.equal(upload(4, 0, "9"), false, "it is of an earlier one");
  assert.equal(await onDisk(), "123 to 3");
  assert.equal(upload(7, 1, "9"), false, "it has to begin with the first, or behind the base's");
  assert.equal(upload(7, 0, "78"), true);
  assert.equal(named(7, "789", 0, "9"), true);
  assert.equal(await onDisk(), "789");
  assert.equal(upload(7, 0, "1"), true, "the base that it is for has come");
  assert.equal(upload(6, 0, "1"), true);
  assert.equal(await onDisk(), "789");
  assert.equal(upload(9, 3, "4"), true);
  assert.equal(upload(9, 0, "6"), true, "its home has none of those here any more");
  assert.equal(named(9, "6", 0, ""), true);
  assert.equal(await onDisk(), "6");
});

Deno.test("a state has so many parts and no more", () => {
  const { rows, log } = keeping();
  const many = Array.from({ length: STATE_PARTS_MAX }, () => part(1));
  assert.equal(rows.upload(log, { at: 5, first: 0, parts: many }), true);
  assert.equal(rows.upload(log, { at: 5, first: STATE_PARTS_MAX, parts: [part(1)] }), false);
});

Deno.test("parts that no base has named are known to be there after a crash, and go with the next base, or the log (KP3)", async () => {
  const all = keeping();
  all.upload(5, 0, "123");
  assert.equal(await all.onDisk(), "123 to 3");
  all.log.setUpload(null); // as a new process begins: it knows of the numbers only
  assert.equal(all.named(6, "78", 0, "78"), true);
  assert.equal(await all.onDisk(), "78", "the third goes too");
  all.upload(9, 2, "4");
  assert.equal(await all.onDisk(), "784 to 3");
  all.rows.dropAll(all.log);
  assert.equal(await all.onDisk(), "");
});

Deno.test("parts that have gone while they are read are said not to be there", async () => {
  const { upload, named, read, rows, log, onDisk } = keeping();
  upload(5, 0, "12");
  named(5, "12", 0, "");
  rows.dropAll(log);
  await onDisk();
  assert.equal(await read(0), null);
});

Deno.test("what was uploaded for a base that never came takes no room (SP2)", () => {
  const { log, upload } = keeping();
  const before = log.bytes;
  assert.equal(upload(5, 0, "12"), true);
  assert.equal(log.bytes, before + 6);
  assert.equal(upload(7, 0, "3"), true, "for another base");
  assert.equal(log.bytes, before + 3);
  log.setUpload(null);
  assert.deepEqual([log.bytes, log.upload], [before, null]);
});
