/** What a client with the library is told whose frames are relayed (runtime/stateful/relayed_peer.ts). */
import assert from "node:assert/strict";
import { CLOSE, decodeToHost } from "../../../functions/sessions/attach/mod.ts";
import {
  FORWARDED_FRAME_BYTES_MAX,
  type FrameWay,
  localWay,
} from "../../../functions/sessions/attach/frame_way.ts";
import { WayRefused } from "../../../functions/sessions/serve/peer_ways.ts";
import { RefusedPeer, RelayedPeer } from "../../../runtime/stateful/relayed_peer.ts";

Deno.test("frames are relayed both ways, and a way that breaks closes its WebSocket, for the same reason ever after (RP1)", async () => {
  const [mine, its] = localWay(), peer = new RelayedPeer(mine);
  await peer.send(Uint8Array.of(1));
  assert.deepEqual(await its.next(), Uint8Array.of(1));
  its.send(Uint8Array.of(2));
  assert.deepEqual(await peer.next(), { kind: "message", data: Uint8Array.of(2) });
  its.close();
  const broken = { kind: "close", code: CLOSE.broken, reason: "" };
  assert.deepEqual([await peer.next(), await peer.next()], [broken, broken]);
  await peer.send(Uint8Array.of(3));
  peer.close(1000, "bye");
  assert.deepEqual(await peer.next(), broken);
});

Deno.test("what is no frame, or longer than one can be, ends the way (RP1)", async () => {
  for (
    const [data, code] of [
      ["text", 1003],
      [new Uint8Array(FORWARDED_FRAME_BYTES_MAX + 1), 1009],
      [new Uint8Array(FORWARDED_FRAME_BYTES_MAX), 1000],
    ] as const
  ) {
    const [mine, its] = localWay(), peer = new RelayedPeer(mine);
    const sent = peer.send(data);
    if (code === 1000) assert.equal((await its.next())?.length, FORWARDED_FRAME_BYTES_MAX);
    await sent;
    peer.close(1000, "by its client");
    assert.equal(await its.next(), null);
    const told = await peer.next();
    assert.equal(told.kind === "close" && told.code, code);
  }
});

Deno.test("who sends is held up as long as its way is (RP2)", async () => {
  const ready = Promise.withResolvers<void>();
  const way = { send: () => {}, ready: () => ready.promise } as unknown as FrameWay;
  let isSent = false;
  const sent = new RelayedPeer(way).send(Uint8Array.of(1)).then(() => isSent = true);
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(isSent, false);
  ready.resolve();
  await sent;
});

Deno.test("who can't be relayed is told why in a frame, and whether to come again", async () => {
  for (
    const [error, code, retry] of [
      [new WayRefused("not_available", "no such class"), "not_available", "fix"],
      [new WayRefused("superseded_home", "there is a newer one"), "stateful_unreachable", "retry"],
      [new Error("a fault"), "internal", "retry"],
    ] as const
  ) {
    const peer = new RefusedPeer(error), first = await peer.next();
    assert.ok(first.kind === "message" && typeof first.data !== "string");
    assert.deepEqual(decodeToHost(first.data), { kind: "refused", code, message: error.message, retry });
    assert.deepEqual(await peer.next(), { kind: "close", code: CLOSE.refused, reason: "" });
  }
});
