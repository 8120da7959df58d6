/** What a request leaves behind in its isolate: nothing that lives until a full collection. */
import assert from "node:assert/strict";
import { bootstrapFile } from "../../../runtime/isolate/bootstrap_file.ts";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf, MemoryStore } from "./apps.ts";

const WARM = 2_000;
const REQUESTS = 3_000;
const AT_ONCE = 16;
/** A request that lives on takes some 2,500 each time; what is left is noise, more of it on a busy machine. */
const BYTES_MAX = 100;
const ROUNDS_MAX = 5;
/** The port of a client that asks for the count. */
const LOOKS = 7;

/**
 * Before the bootstrap: counts the bytes that V8 takes for old objects, to which an app has no way. A full collection
 * in between takes nothing from the count.
 */
const COUNT = `
import v8 from "node:v8";
let last = Infinity, moved = 0;
Object.defineProperty(Object.prototype, Symbol.for("test.moved"), {
  get: () => {
    const { space_used_size } = v8.getHeapSpaceStatistics().find((space) => space.space_name === "old_space");
    moved += Math.max(0, space_used_size - last);
    last = space_used_size;
    return moved;
  },
});
`;

const APPS = {
  "looks at nothing": "() => new Response('hello')",
  "looks at its request": "(r) => new Response(r.method + new URL(r.url).pathname + r.headers.get('accept'))",
  "uses its env": "(r, env) => new Response([typeof env.kv, typeof env.sessions, env.vars.A].join())",
};

for (const [name, handler] of Object.entries(APPS)) {
  Deno.test(`an app that ${name}: no request lives on after its answer`, async () => {
    const cacheFolder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
    const serve = await bootstrapFile("serve", cacheFolder);
    await Deno.writeTextFile(serve, COUNT + await Deno.readTextFile(serve));
    const pool = new IsolatePool({ spares: 0, cacheFolder });
    try {
      const app = appOf(`
        const handler = ${handler};
        export default {
          fetch: (r, env) => {
            const moved = ({})[Symbol.for("test.moved")];
            return env.remoteAddr.port === ${LOOKS} ? Response.json(moved) : handler(r, env);
          },
        };
      `);
      const store = new MemoryStore();
      const headers = [["accept", "*/*"], ["user-agent", "test"]];
      const ask = async (port: number) => {
        const context = { sessionId: "s", site: "edge-1", version: "v", remoteAddr: `127.0.0.1:${port}` };
        const request = new Request("http://localhost/path", { headers });
        const answer = await pool.call(app, callOf(request, { store, context }));
        if (answer.kind !== "response") throw new Error(JSON.stringify(answer));
        return await answer.response.text();
      };
      const run = async (requests: number) => {
        let left = requests;
        await Promise.all(Array.from({ length: AT_ONCE }, async () => {
          while (left-- > 0) await ask(1);
        }));
      };
      await run(WARM);
      let bytes = Infinity;
      for (let round = 0; round < ROUNDS_MAX && bytes >= BYTES_MAX; round++) {
        const before = Number(await ask(LOOKS));
        await run(REQUESTS);
        bytes = Math.min(bytes, Math.round((Number(await ask(LOOKS)) - before) / REQUESTS));
      }
      assert(bytes < BYTES_MAX, `${bytes} bytes of a request live on`);
    } finally {
      await pool.close();
      await Deno.remove(cacheFolder, { recursive: true });
    }
  });
}
