/** What commands ask of a dev cluster, against a door that only notes it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { COMMANDS, EXIT, runCli } from "../../../runtime/cli/mod.ts";

/** Runs a command against a cluster file whose door answers by a handler. */
async function runAgainst(
  handler: (request: Request) => Response,
  args: readonly string[],
  env: Record<string, string> = {},
) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
  const data = await Deno.makeTempDir();
  try {
    const url = `http://127.0.0.1:${server.addr.port}`;
    const site = { id: "cloud", parent: null, tier: "root", url, pid: 1 };
    const file = { pid: 1, adminToken: "of-the-file", controlUrl: url, sites: [site] };
    await Deno.writeTextFile(join(data, "cluster.json"), JSON.stringify(file));
    const out: string[] = [], err: string[] = [];
    const shell = {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      env: (name: string) => env[name],
    };
    const code = await runCli([...args, "--data", data], shell);
    return { code, out: out.join("\n"), err: err.join("\n") };
  } finally {
    await server.shutdown();
    await Deno.remove(data, { recursive: true });
  }
}

Deno.test("chaos goes by SOJOURN_TOKEN like every command, and a wrong one breaks nothing", async () => {
  assert.ok(Object.hasOwn(COMMANDS, "chaos"));
  const broken: string[] = [];
  const door = (request: Request): Response => {
    if (request.headers.get("authorization") !== "Bearer of-the-file") {
      return Response.json({ code: "admin_token_invalid", detail: "no" }, { status: 401 });
    }
    if (request.method === "POST") broken.push("edge-1");
    return Response.json({ action: "kill", did: "killed", undo: "restart", missing: [] });
  };
  const wrong = await runAgainst(door, ["chaos", "kill", "edge-1"], { SOJOURN_TOKEN: "another" });
  assert.deepEqual([wrong.code, wrong.err, broken], [EXIT.failed, "admin_token_invalid: no", []]);
  const own = await runAgainst(door, ["chaos", "kill", "edge-1"]);
  assert.deepEqual([own.code, broken], [EXIT.done, ["edge-1"]]);
});
