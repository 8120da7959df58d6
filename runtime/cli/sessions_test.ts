import { strict as assert } from "node:assert";
import { ownersText } from "./sessions.ts";

Deno.test("sessions list says which of those who keep a log are away, and which are gone", () => {
  const states = new Map([
    ["edge-1", { up: false, silentMs: 4_000 }],
    ["edge-2", { up: true, silentMs: 0 }],
  ]);
  const rows: [owners: string[], text: string][] = [
    [[], "-"],
    [["edge-2"], "edge-2"],
    [["edge-1", "edge-2"], "edge-1 (down for 4 s),edge-2"],
    [["edge-9"], "edge-9 (removed)"],
    [["@phone", "edge-1"], "@phone,edge-1 (down for 4 s)"],
  ];
  for (const [owners, text] of rows) assert.equal(ownersText({ owners }, states), text);
});
