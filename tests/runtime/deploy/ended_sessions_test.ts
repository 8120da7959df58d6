/** What is kept of stateful sessions that have ended, wherever each did. */
import assert from "node:assert/strict";
import { forgetEnded, lastEndedLog } from "../../../runtime/admin/ended_sessions.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import { problemResponse } from "../../../runtime/gateway/problem.ts";
import { Problem } from "../../../functions/vocabulary/problem.ts";
import { MemorySystem } from "./memory_system.ts";
import { packKey } from "../../../store/model/key.ts";

const NAME = { app: "shop", class: "cart", id: "a/b" };

/** A root and its sites, each with when what it keeps has ended; null: nothing, "down": it does not answer. */
async function cluster(kept: Readonly<Record<string, number | null | "down">>) {
  const system = new MemorySystem();
  for (const [depth, id] of Object.keys(kept).entries()) {
    const key = packKey(["s", "site", id]);
    await system.write([{ kind: "set", key, value: encodeSystem({ id, depth }) }]);
  }
  const asked: string[] = [];
  const answered = (site: string, request: Request | null): Response => {
    if (request !== null) asked.push(`${request.method} ${new URL(request.url).pathname}`);
    const endedMs = kept[site];
    if (endedMs === "down") throw new Problem("stateful_unreachable", "nobody answers");
    if (endedMs == null) return problemResponse("not_found", "there is none");
    return Response.json({ endedMs, epoch: endedMs, entries: [] });
  };
  const services = {
    ...{ site: "cloud", system },
    forward: (site: string, request: Request) => Promise.resolve().then(() => answered(site, request)),
  };
  const here = () => Promise.resolve(answered("cloud", null));
  return {
    asked,
    log: async (query = "ended=1"): Promise<Record<string, unknown>> => {
      const answer = await lastEndedLog(services as never, NAME, new URLSearchParams(query), here);
      return { status: answer.status, ...await answer.json() as Record<string, unknown> };
    },
    forget: () => forgetEnded(services as never, NAME, here),
  };
}

Deno.test("the log of the last one of a name that ended is found at whichever site that was", async () => {
  const { log, asked } = await cluster({ cloud: null, "edge-1": 5, "edge-2": 9, "edge-3": "down" });
  const found = await log();
  assert.deepEqual([found.status, found.by, found.home, found.endedMs], [200, "edge-2", "edge-2", 9]);
  assert.deepEqual(found.failed, ["edge-3: nobody answers"]);
  assert.deepEqual(new Set(asked), new Set(["GET /_sojourn/admin/sessions/shop/cart/a%2Fb/log"]));
  assert.equal(
    (await log("ended=1&at=edge-1&from=40")).endedMs,
    5,
    "the rest of it comes from the same site",
  );
  assert.equal((await (await cluster({ cloud: 3, "edge-1": 2 })).log()).by, "cloud");
});

Deno.test("where no site has one that says so, and where one that may have it does not answer that is named", async () => {
  const none = await (await cluster({ cloud: null, "edge-1": null })).log();
  assert.deepEqual([none.status, none.code], [404, "not_found"]);
  const down = await (await cluster({ cloud: null, "edge-1": "down" })).log();
  assert.deepEqual([down.status, down.code], [503, "stateful_unreachable"]);
  assert.match(String(down.detail), /edge-1: nobody answers/);
});

Deno.test("one that is deleted is kept at no site, and those that did not answer are named", async () => {
  const { forget, asked } = await cluster({ cloud: null, "edge-1": 5, "edge-2": null, "edge-3": "down" });
  assert.deepEqual(await forget(), { dropped: true, missing: ["edge-3"] });
  assert.deepEqual(asked.length, 3);
  assert.match(asked[0] ?? "", /^DELETE /);
  assert.deepEqual(await (await cluster({ cloud: null })).forget(), { dropped: false, missing: [] });
});
