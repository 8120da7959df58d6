import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { encodeMessage, type WireRow } from "../../../store/wire/message.ts";
import { packKey } from "../../../store/model/key.ts";
import { framed, VirtualLinks } from "./links.ts";
import { rowsBytes } from "./messages.ts";
import { BYTES_PER_MS, roundTripMs, route } from "./topology.ts";
import { inVirtualTime } from "./virtual_run.ts";

const close = (actual: number, expected: number) =>
  ok(Math.abs(actual - expected) < 1e-6, `${actual}, not ${expected}`);

Deno.test("routes follow the tree, and sites are as far apart as in the paper", () => {
  deepStrictEqual(route("edge-1", "edge-3"), ["edge-1", "core-1", "cloud", "core-2", "edge-3"]);
  deepStrictEqual(route("edge-1", "edge-2"), ["edge-1", "core-1", "edge-2"]);
  deepStrictEqual(route("cloud", "edge-3"), ["cloud", "core-2", "edge-3"]);
  strictEqual(roundTripMs("edge-1", "edge-2"), 4);
  strictEqual(roundTripMs("edge-1", "cloud"), 22);
  strictEqual(roundTripMs("edge-1", "edge-3"), 44);
});

Deno.test("a message takes the links' delays and its bytes once, however many links it passes", async () => {
  const ms = await inVirtualTime(async ({ world, links }) => {
    await links.deliver("edge-1", "edge-3", 1_000_000);
    return world.nowMs;
  });
  close(ms, 22 + framed(1_000_000) / BYTES_PER_MS);
});

Deno.test("messages that meet on a link pass it one after the other, in order", async () => {
  const { order, ms } = await inVirtualTime(async ({ world, links }) => {
    const order: string[] = [];
    await Promise.all([
      links.deliver("edge-1", "cloud", 500_000).then(() => order.push("long")),
      links.deliver("edge-1", "cloud", 10).then(() => order.push("short")),
      links.deliver("cloud", "edge-1", 10).then(() => order.push("other way")),
    ]);
    return { order, ms: world.nowMs };
  });
  deepStrictEqual(order, ["other way", "long", "short"]);
  close(ms, 11 + (framed(500_000) + framed(10)) / BYTES_PER_MS);
});

Deno.test("bytes are counted once a message and once a link", async () => {
  const tally = await inVirtualTime(async ({ links }) => {
    await links.deliver("edge-1", "edge-2", 100);
    return links.tally;
  });
  deepStrictEqual(tally, { messages: 1, bytes: 124, linkBytes: 248 });
  strictEqual(framed(40_000), 40_000 + 4 + 2 * 4 + 20);
});

Deno.test("what comes to a held site arrives when it is released", async () => {
  await inVirtualTime(async ({ world, links }) => {
    let arrived = 0;
    links.hold("cloud");
    void links.send("core-1", "cloud", 10, () => arrived++);
    await world.sleep(1_000);
    strictEqual(arrived, 0);
    links.release("cloud");
    strictEqual(arrived, 1);
  });
});

Deno.test("a sender waits when the window is full", async () => {
  await inVirtualTime(async ({ world }) => {
    const links = new VirtualLinks(world);
    await links.send("edge-1", "cloud", 1 << 20, () => {});
    strictEqual(world.nowMs, 0);
    await links.send("edge-1", "cloud", 4 << 20, () => {});
    ok(world.nowMs > 11, "the second message went at once");
  });
});

Deno.test("rowsBytes is the length of our message with these rows", () => {
  const row = (bytes: number | null): WireRow => ({
    key: packKey(["a", "b", bytes ?? -1]),
    value: bytes === null ? null : new Uint8Array(bytes),
    clock: 2 ** 40 + 1,
    replica: 300,
    known: 1,
    expiresAtMs: 0,
  });
  for (const rows of [[], [row(0)], [row(127), row(128)], [row(20_000), row(null)]]) {
    const message = { kind: "carry", id: 1, outcome: "rows", need: 0, clock: 2 ** 47, rows } as const;
    strictEqual(rowsBytes(rows), encodeMessage(message).length);
  }
});
