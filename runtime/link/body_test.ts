import assert from "node:assert/strict";
import { LinkBodyReceiver } from "./body.ts";

Deno.test("small parts of a body that wait are joined, and come in their order (BD2)", async () => {
  const body = new LinkBodyReceiver(1 << 20, { grant: () => {}, cancelled: () => {} });
  const sent: number[] = [];
  const part = (length: number, last = false) => {
    const bytes = Uint8Array.from({ length }, (_, i) => sent.length + i);
    for (const byte of bytes) sent.push(byte);
    body.receive(bytes, last);
    bytes.fill(0); // its buffer is used again
  };
  part(5_000);
  for (let i = 0; i < 20_000; i++) part(1);
  part(300);
  for (let i = 0; i < 100; i++) part(200);
  part(0, true);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.stream) chunks.push(chunk);
  assert.deepEqual(Uint8Array.from(chunks.flatMap((chunk) => [...chunk])), Uint8Array.from(sent));
  assert.ok(chunks.length < 20, `${chunks.length} chunks`);
});
