import assert from "node:assert/strict";
import { AppQueues } from "./app_queues.ts";
import { FrameWriter } from "./frame_writer.ts";
import { HostSocket } from "./host_socket.ts";

const nowhere = () =>
  new FrameWriter(
    { read: () => Promise.resolve(null), write: (batch) => Promise.resolve(batch.length) },
    () => {},
  );
const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test("messages of an app wait for the gate, in their order, and the close comes behind them (W1)", async () => {
  const held = Promise.withResolvers<void>(), seen: string[] = [];
  let gates = 0;
  const socket = new HostSocket(nowhere(), 1, {
    protocol: "",
    gate: () => gates++ === 0 ? held.promise : Promise.resolve(),
    closed: () => seen.push("closed"),
    queues: new AppQueues(),
  });
  socket.bridge({
    message: (data) => seen.push(String(data)),
    close: (code) => seen.push(`close ${code}`),
  });
  for (const text of ["a", "b"]) socket.fromApp(text, text.length);
  socket.closeFromApp(4000, "bye");
  await turn();
  assert.deepEqual(seen, []);
  held.resolve();
  await turn();
  assert.deepEqual(seen, ["a", "b", "close 4000", "closed"]);
  assert.equal(gates, 3);
});
