/** Who is slow slows its sender down, and nobody else. */
import { strict as assert } from "node:assert";
import { MemoryTransport, TCP, type Transport } from "../../../runtime/link/mod.ts";
import { bytes, textOf, until, withSites } from "./sites.ts";

const TRANSPORTS: Record<string, () => Transport> = { TCP: () => TCP, memory: () => new MemoryTransport() };

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  Deno.test(`link over ${name}: a receiver that takes nothing stops its sender, within the window`, () =>
    withSites(transport(), async (start) => {
      const gate = Promise.withResolvers<void>();
      let taken = 0;
      const parent = start({
        site: "core",
        message: async () => {
          await gate.promise;
          taken++;
        },
      });
      const child = start({ site: "edge", parent });
      await child.connected("core");
      let sent = 0;
      const sending = (async () => {
        for (; sent < 1_000; sent++) await child.hub.send("core", new Uint8Array(20_000));
      })();
      // A window of 4 MiB there, room for 1 MiB here, and what was accepted when the room ran out.
      const bound = Math.ceil((4 + 1) * 1024 * 1024 / 20_000) + 2;
      await until("the sender is stopped", () => {
        const { queuedBytes, counters } = child.link("core");
        return queuedBytes >= 1024 * 1024 && counters.storeBytesOut > 4 * 1024 * 1024 - 30_000;
      });
      const before = child.link("core").counters.storeBytesOut;
      const answer = await child.hub.request("core", "echo", bytes("still here"));
      assert.equal(textOf(answer.head), "still here", "requests pass");
      assert.equal(child.link("core").counters.storeBytesOut, before, "not a byte more");
      assert.ok(before <= 4 * 1024 * 1024, `${before} bytes are at the receiver`);
      assert.ok(sent <= bound, `${sent} messages were accepted, more than ${bound}`);
      gate.resolve();
      await sending;
      await until("all of them were taken", () => taken === 1_000);
    }));

  Deno.test(`link over ${name}: a body that nobody reads stops its source, and other bodies go on`, () =>
    withSites(transport(), async (start) => {
      const parent = start({ site: "core" });
      const child = start({ site: "edge", parent });
      await child.connected("core");
      let produced = 0;
      const source = () =>
        new ReadableStream<Uint8Array>({
          pull(controller) {
            produced += 10_000;
            controller.enqueue(new Uint8Array(10_000));
          },
        }, { highWaterMark: 0 });
      // The echo's answer is not read, so the echo stops reading: two windows, one each way.
      const stuck = await child.hub.request("core", "echo", bytes(""), { body: source() });
      const windows = 2 * 1024 * 1024;
      // Up to a quarter of each has been read and not been granted again.
      await until("the windows are full", () => produced >= 0.75 * windows);
      const other = await child.hub.request("core", "echo", bytes(""), {
        body: ReadableStream.from([new Uint8Array(3_000_000)]),
      });
      assert.equal((await new Response(other.body).arrayBuffer()).byteLength, 3_000_000);
      assert.ok(produced <= windows + 200_000, `${produced} bytes were taken from the source`);
      await stuck.body?.cancel();
    }));

  Deno.test(`link over ${name}: a store message of 64 MB lets requests through`, () =>
    withSites(transport(), async (start) => {
      const parent = start({ site: "core" });
      const child = start({ site: "edge", parent });
      await child.connected("core");
      await child.hub.request("core", "echo", bytes("warm"));
      const sent = child.hub.send("core", new Uint8Array(64_000_000));
      let answered = 0;
      for (; parent.messages.length === 0; answered++) await child.hub.request("core", "echo", bytes("x"));
      await sent;
      // Of the message one window may be ahead of each, 4 MiB: it has fifteen.
      assert.ok(answered >= 10, `${answered} requests were answered beside it`);
    }));

  Deno.test(`link over ${name}: a sender that ignores the room loses the link, not the site`, () =>
    withSites(transport(), async (start) => {
      const limits = { queueBytesMax: 2_000_000, messageBytesMax: 1_000_000 };
      const parent = start({ site: "core", message: () => new Promise(() => {}) });
      const child = start({ site: "edge", parent, limits });
      await child.connected("core");
      for (let i = 0; i < 100; i++) void child.hub.send("core", new Uint8Array(100_000));
      await until(
        "it was closed",
        () => child.log.some(({ reason }) => String(reason).includes("queued for it")),
      );
      await until("and came back", () => child.events.length >= 3);
      assert.deepEqual(child.events.slice(0, 3), ["+core parent", "-core lost", "+core parent"]);
    }));
}

Deno.test("messages that come in one piece leave everything else its turns (CX4)", () =>
  withSites(new MemoryTransport(), async (start) => {
    const count = 2_000;
    let taken = 0, atOnce = 0, mostAtOnce = 0, isOver = false;
    const turn = () => {
      atOnce = 0;
      if (!isOver) setImmediate(turn);
    };
    const core = start({ site: "core" });
    const edge = start({
      site: "edge",
      parent: core,
      message: () => {
        taken++;
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        for (const untilMs = performance.now() + 0.05; performance.now() < untilMs;); // as a replica takes it
      },
    });
    await edge.connected("core");
    turn();
    for (let i = 0; i < count; i++) void core.hub.send("edge", new Uint8Array(1_000));
    await until("all have come", () => taken === count);
    isOver = true;
    // A slice, and what the record has that ends it.
    assert.ok(mostAtOnce <= 100, `${mostAtOnce} of ${count} were taken in one turn`);
  }));

Deno.test("a long message that goes out leaves everything else its turns (CX4)", () =>
  withSites(TCP, async (start) => {
    const BYTES = 4_000_000; // within the window
    let before = 0, mostAtOnce = 0, isOver = false;
    const core = start({ site: "core" });
    const edge = start({ site: "edge", parent: core });
    await edge.connected("core");
    const bytesOut = () => edge.link("core").counters.bytesOut;
    const turn = () => {
      const now = bytesOut();
      mostAtOnce = Math.max(mostAtOnce, now - before);
      before = now;
      if (!isOver) setImmediate(turn);
    };
    before = bytesOut();
    turn();
    await edge.hub.send("core", new Uint8Array(BYTES));
    await until("it has come", () => core.messages.length === 1);
    isOver = true;
    assert.ok(mostAtOnce <= BYTES / 2, `${mostAtOnce} of ${BYTES} bytes went in one turn`);
  }));
