/** `sojourn logs` at sites that are played. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runCli } from "../../../runtime/cli/mod.ts";

const line = (text: string) =>
  JSON.stringify({ atMs: 1_800_000_000_000, site: "edge-1", app: "cafe", level: "info", text }) + "\n";

/** A site with one app, whose logs are what is given; the stream ends where no `stays` keeps it. */
function playedSite(logs: readonly string[], stays = false) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/_sojourn/admin/apps") {
      return Response.json([{
        app: "cafe",
        version: "0".repeat(64),
        versions: 1,
        deployedMs: 0,
        tables: [],
      }]);
    }
    if (pathname !== "/_sojourn/admin/logs") return new Response();
    return new Response(ReadableStream.from(async function* () {
      yield new TextEncoder().encode(logs.map(line).join("") || "\n");
      if (stays) await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    }()));
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

/** A shell that keeps what it is told, and is interrupted when a line has come. */
function shellUntil(last: string) {
  const [out, err] = [[] as string[], [] as string[]];
  const stop = new AbortController();
  const shell = {
    out: (text: string) => {
      out.push((JSON.parse(text) as { text: string }).text);
      if (out.at(-1) === last) stop.abort();
    },
    err: (text: string) => void err.push(text),
    env: () => undefined,
    interrupted: () => stop.signal,
  };
  return { shell, out, err };
}

Deno.test("logs goes on at another site, with every line as often as it was printed (logs.ts L1)", async () => {
  const first = playedSite(["same", "same", "same", "before"]);
  const second = playedSite(["same", "same", "same", "before", "meanwhile", "meanwhile", "end"], true);
  const data = await Deno.makeTempDir();
  const sites = [first, second].map(({ url }, i) => ({
    id: `edge-${i}`,
    parent: null,
    tier: "edge",
    url,
    pid: 1,
  }));
  await Deno.writeTextFile(join(data, "cluster.json"), JSON.stringify({ pid: 1, adminToken: "x", sites }));
  const { shell, out, err } = shellUntil("end");
  const running = runCli(["logs", "cafe", "--follow", "--json", "--data", data], {
    ...shell,
    out: (text) => {
      shell.out(text);
      if (out.at(-1) === "before") void first.close();
    },
  });
  assert.equal(await running, 0, err.join("\n"));
  assert.deepEqual(out, ["same", "same", "same", "before", "meanwhile", "meanwhile", "end"]);
  await second.close();
  await Deno.remove(data, { recursive: true });
});

Deno.test("logs of an app that there is not are no success", async () => {
  const site = playedSite([]);
  const { shell, out, err } = shellUntil("");
  assert.equal(await runCli(["logs", "caffe", "--to", site.url], shell), 1);
  assert.deepEqual([out, err], [[], ['app_unknown: no app is called "caffe"']]);
  assert.equal(await runCli(["logs", "cafe", "--to", site.url], shell), 0);
  await site.close();
});

Deno.test("what an app prints is shown, and moves no cursor (logs.ts L2)", async () => {
  const site = playedSite(["\x1b[2J\x1b]0;title\x07plain\r\x9b1A"]);
  const out: string[] = [];
  const code = await runCli(["logs", "cafe", "--to", site.url], {
    out: (text) => void out.push(text),
    err: () => {},
    env: (name) => name === "SOJOURN_TOKEN" ? "x" : undefined,
  });
  await site.close();
  assert.equal(code, 0);
  assert.match(out.join("\n"), /plain/);
  const moving = [...out.join("")].filter((char) => char < " " || (char >= "\x7f" && char <= "\x9f"));
  assert.deepEqual(moving, []);
});
