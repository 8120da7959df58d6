/** What it costs on the link that a site comes to another parent with its rows (store/tree/resync.ts). */
import { strict as assert } from "node:assert";
import { ResyncedPair } from "./resynced_pair.ts";

const ROWS = 100_000, VALUE_BYTES = 40;

Deno.test("a site that moves fetches what differs, and bytes follow the difference", async () => {
  const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
  let before = 0;
  for (const [differing, bytesMax] of [[0, 2_500], [1, 6_000], [10, 35_000], [1_000, 1_500_000]] as const) {
    await pair.cutOff();
    const step = Math.max(1, Math.floor(ROWS / Math.max(1, differing)));
    await pair.write(Array.from({ length: differing }, (_, i) => i * step));
    const bytes = await pair.move();
    assert.ok(bytes < bytesMax, `${bytes} bytes crossed the link for ${differing} rows`);
    assert.ok(bytes > before, `${bytes} bytes for ${differing} rows, ${before} for fewer`);
    assert.ok(await pair.isSame());
    before = bytes;
  }
  await pair.close();
});
