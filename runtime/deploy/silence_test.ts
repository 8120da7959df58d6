import assert from "node:assert/strict";
import { Silence } from "./silence.ts";

Deno.test("a stream that says nothing is given up, with how long it was waited for", async () => {
  using silence = new Silence(undefined, 20);
  await new Promise((resolve) => silence.signal.addEventListener("abort", resolve));
  assert.throws(() => silence.throwIfLong(), /nothing came within 0.02 s/);
});

Deno.test("a stream with signs of life goes on, and ends with its reader's signal", () => {
  const stop = new AbortController();
  using silence = new Silence(stop.signal, 60_000);
  for (let i = 0; i < 10; i++) silence.begins();
  silence.throwIfLong();
  assert.equal(silence.signal.aborted, false);
  stop.abort();
  assert.equal(silence.signal.aborted, true);
  silence.throwIfLong();
});
