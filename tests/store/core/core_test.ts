/** What the parts of a replica share (store/core/core.ts). */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { loneCore } from "../lone_core.ts";

Deno.test("what comes from above in the place of a row that was pending leaves nothing pending", () => {
  const core = loneCore(["root", "e"], 4), key = packKey(["x"]);
  core.rows.put(core.own(key, new Uint8Array(3)));
  assert.equal(core.pending.size, 1);
  core.rows.put({ ...core.own(key, new Uint8Array(3)), replica: 1, known: 0 });
  assert.deepEqual([core.pending.size, core.pending.bytes], [0, 0]);
});
