/** What a site has ready for the stateful sessions of others, as its processes show it. */
import { strict as assert } from "node:assert";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const ID = "kept";

async function sessions(cluster: TestCluster, command: string, ...rest: string[]): Promise<string> {
  const out: string[] = [];
  const shell = { out: (text: string) => out.push(text), err: () => {}, env: () => undefined };
  await runCli(["sessions", command, "counter", "counter", ID, ...rest, "--data", cluster.data], shell);
  return out.join("");
}

/** At a site that had no session of its own: where another's log is kept, a process waits for it. */
export async function isReadied(cluster: TestCluster): Promise<void> {
  const url = `${cluster.url("edge-1")}/counter/${ID}/call/add`;
  assert.equal((await ask(url, { method: "POST", body: "[1]" })).status, 200);
  const { owners } = JSON.parse(await sessions(cluster, "show", "--json")) as { owners: string[] };
  const heir = owners.find((owner) => owner !== "edge-1");
  assert.ok(heir !== undefined, `${owners}`);
  const { pid } = await cluster.site(heir);
  await eventually(`a process of stateful sessions waits at ${heir}`, async () => {
    const { stdout } = await new Deno.Command("ps", { args: ["--ppid", `${pid}`, "-o", "args="] }).output();
    return new TextDecoder().decode(stdout).includes("stateful");
  });
  await sessions(cluster, "delete");
}
