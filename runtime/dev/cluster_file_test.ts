import { strict as assert } from "node:assert";
import { join } from "node:path";
import { CLUSTER_FILE } from "../cli/mod.ts";
import { ClusterFilePlaces } from "./cluster_file.ts";

/** A dev process that answers, as another cluster's does. */
function door() {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => new Response());
  return { url: `http://127.0.0.1:${server.addr.port}/`, close: () => server.shutdown() };
}

Deno.test("the file of another cluster that runs is left, where commands look; that of one that has ended is not (CF1)", async () => {
  const data = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  const found = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  const read = async (folder: string) => JSON.parse(await Deno.readTextFile(join(folder, CLUSTER_FILE))).pid;
  const other = door();
  const site = { id: "cloud", parent: null, tier: "root", url: "http://127.0.0.1:1/", pid: 1 };
  const file = (pid: number, controlUrl: string) => ({ pid, controlUrl, adminToken: "token", sites: [site] });
  try {
    await Deno.writeTextFile(join(found, CLUSTER_FILE), JSON.stringify(file(Deno.pid + 1, other.url)));
    const places = new ClusterFilePlaces(data, found);
    assert.equal(await places.write(file(Deno.pid, "http://127.0.0.1:1/")), false);
    assert.deepEqual([await read(data), await read(found)], [Deno.pid, Deno.pid + 1]);
    await places.remove();
    assert.equal(await read(found), Deno.pid + 1, "nor is it removed");
    await other.close();
    assert.equal(await places.write(file(Deno.pid, "http://127.0.0.1:1/")), true);
    assert.equal(await read(found), Deno.pid);
    assert.equal(((await Deno.stat(join(found, CLUSTER_FILE))).mode ?? 0) & 0o777, 0o600);
  } finally {
    for (const folder of [data, found]) await Deno.remove(folder, { recursive: true });
  }
});
