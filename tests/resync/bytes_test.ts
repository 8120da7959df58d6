/** What it costs on the link that a site comes to another parent with its rows (store/resync.ts). */
import { strict as assert } from "node:assert";
import { ResyncedPair } from "./resynced_pair.ts";

const ROWS = 100_000, VALUE_BYTES = 40;

Deno.test("a site that moved fetches what differs, and bytes follow the difference", async (t) => {
  let before = 0;
  for (const [differing, bytesMax] of [[0, 5_000], [1, 20_000], [10, 120_000], [1_000, 3_000_000]] as const) {
    await t.step(`${differing} of ${ROWS} rows`, async () => {
      const pair = await ResyncedPair.open(ROWS, VALUE_BYTES);
      const bytes = await pair.move(differing);
      assert.ok(bytes < bytesMax, `${bytes} bytes crossed the link for ${differing} rows`);
      assert.ok(bytes > before, `${bytes} bytes for ${differing} rows, ${before} for fewer`);
      before = bytes;
      await pair.close();
    });
  }
});
