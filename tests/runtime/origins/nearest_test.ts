/** To which sites agents for clients go. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { encodeToHost } from "../../../functions/sessions/attach/frame_bytes.ts";
import { SUBPROTOCOL } from "../../../functions/sessions/attach/mod.ts";
import { runCli } from "../../../runtime/cli/mod.ts";
import { agentCommand } from "../../../runtime/origins/command.ts";
import { sitesByRoundTrip } from "../../../runtime/origins/nearest.ts";

Deno.test("sites are in the order of their round trips, alike ones by tier, those that do not serve last (NR1, NR2)", async () => {
  const sites = [
    { url: "root", tier: "root", ms: 1 },
    { url: "gone", tier: "edge", ms: null },
    { url: "far", tier: "edge", ms: 40 },
    { url: "near", tier: "edge", ms: 1.5 },
    { url: "core", tier: "core", ms: 1 },
    { url: "gone too", tier: "core", ms: null },
  ];
  const measured = await sitesByRoundTrip(
    sites,
    (url) => Promise.resolve(sites.find((site) => site.url === url)?.ms ?? null),
  );
  assert.deepEqual(measured, ["near", "core", "root", "far", "gone", "gone too"]);
});

interface FakeSite {
  readonly id: string;
  readonly tier: "root" | "edge";
  readonly answerMs: number;
  isReady: boolean;
  url: string;
}

/** A cluster whose sites tell where the agent's clients come. */
function fakeCluster(made: readonly Omit<FakeSite, "url" | "isReady">[]) {
  let attached = Promise.withResolvers<string>();
  const sites: FakeSite[] = made.map((site) => ({ ...site, isReady: true, url: "" }));
  const servers = sites.map((site) => {
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      const { pathname } = new URL(request.url);
      switch (pathname) {
        case "/_sojourn/healthz":
          return new Response();
        case "/_sojourn/readyz":
          await new Promise((resolve) => setTimeout(resolve, site.answerMs));
          return new Response(null, { status: site.isReady ? 200 : 503 });
        case "/_sojourn/sites":
          return Response.json(sites.map(({ id, url, tier }) => ({ id, url, tier })));
        case "/_sojourn/agent/check":
          return Response.json({ app: "shop", class: "till" });
      }
      const { socket, response } = Deno.upgradeWebSocket(request, { protocol: SUBPROTOCOL });
      socket.onmessage = () => {
        attached.resolve(site.id);
        socket.send(encodeToHost({ kind: "refused", code: "app_unknown", message: "enough", retry: "fix" }));
      };
      return response;
    });
    site.url = `http://127.0.0.1:${server.addr.port}`;
    return server;
  });
  /** Resolves with where the next client of an agent comes. */
  const next = () => (attached = Promise.withResolvers()).promise;
  return { sites, next, close: () => Promise.all(servers.map((server) => server.shutdown())) };
}

async function firstSiteOf(cluster: ReturnType<typeof fakeCluster>, ...args: readonly string[]) {
  const stop = new AbortController();
  const first = Promise.withResolvers<{ port: number }>();
  const shell = {
    out: (line: string) => first.resolve(JSON.parse(line)),
    err: () => {},
    env: () => undefined,
    interrupted: () => stop.signal,
  };
  const of = ["--app", "shop", "--session", "till", "--listen", "127.0.0.1:0"];
  const running = runCli(["agent", "--json", ...of, ...args], shell, [agentCommand]);
  running.then((code) => first.reject(new Error(`it ended with ${code}`)), first.reject);
  const { port } = await first.promise;
  const attached = cluster.next();
  const program = await Deno.connect({ hostname: "127.0.0.1", port });
  const site = await attached;
  program.close();
  stop.abort();
  await running;
  return site;
}

Deno.test("an agent for clients that was told no site goes to the nearest, else to the one it was told", async () => {
  const cluster = fakeCluster([
    { id: "cloud", tier: "root", answerMs: 60 },
    { id: "edge-far", tier: "edge", answerMs: 120 },
    { id: "edge-near", tier: "edge", answerMs: 0 },
  ]);
  const data = await Deno.makeTempDir();
  try {
    const sites = cluster.sites.map(({ id, tier, url }) => ({ id, tier, url, parent: null, pid: 1 }));
    const file = { pid: 1, adminToken: "admin", sites };
    await Deno.writeTextFile(join(data, "cluster.json"), JSON.stringify(file));
    assert.equal(await firstSiteOf(cluster, "--data", data), "edge-near");
    const [, far, near] = cluster.sites;
    assert(far !== undefined && near !== undefined);
    assert.equal(await firstSiteOf(cluster, "--to", far.url), "edge-far");
    near.isReady = false;
    assert.equal(await firstSiteOf(cluster, "--data", data), "cloud");
  } finally {
    await cluster.close();
    await Deno.remove(data, { recursive: true });
  }
});
