/** Processes that are gone, told from sites that are cut off, stand still or restart. */
import { strict as assert } from "node:assert";
import type { ByteConnection } from "../../../runtime/link/byte_connection.ts";
import { TCP, type Transport } from "../../../runtime/link/mod.ts";
import { bytes, type LinkSite, type SiteOptions, until, withSites } from "./sites.ts";

/** TCP of a process that can be killed: what it has is closed by the kernel, and it says nothing more. */
class Mortal implements Transport {
  readonly #closes: (() => void)[] = [];
  #isDead = false;

  listen(at: { readonly hostname: string; readonly port: number }): ReturnType<Transport["listen"]> {
    const listener = TCP.listen(at);
    this.#closes.unshift(() => listener.close());
    return {
      address: listener.address,
      accept: async () => {
        const accepted = await listener.accept();
        if (accepted !== null) this.#own(accepted.connection);
        return accepted;
      },
      close: () => this.#isDead || listener.close(),
    };
  }

  async dial(address: string): Promise<ByteConnection> {
    if (this.#isDead) throw new Error("this process is dead");
    return this.#own(await TCP.dial(address));
  }

  #own(connection: ByteConnection): ByteConnection {
    this.#closes.push(() => connection.close());
    return connection;
  }

  kill(): void {
    this.#isDead = true;
    for (const close of this.#closes) {
      try {
        close();
      } catch {
        // It was closed before.
      }
    }
  }
}

/** A root, and an edge below it whose process can be killed; both are linked. */
async function pair(
  run: (root: LinkSite, edge: LinkSite, edgeProcess: Mortal) => Promise<void>,
  options: Partial<SiteOptions> = {},
): Promise<void> {
  const process = new Mortal();
  await withSites(TCP, async (startRoot, book) => {
    await withSites(process, async (startEdge, edges) => {
      const root = startRoot({ site: "root", ...options });
      edges.set("root", root.address);
      const edge = startEdge({ site: "edge", parent: root, ...options });
      book.set("edge", edge.address);
      await root.connected("edge");
      await run(root, edge, process);
    });
  });
}

Deno.test("links: a process that is killed is found gone at once, also by a peer that asks for it", () =>
  pair(async (root, _edge, process) => {
    process.kill();
    await until("the root finds it gone", () => root.refused.includes("edge"));
    assert.equal(root.isConnected("edge"), false);
    root.refused.length = 0;
    await assert.rejects(root.hub.request("edge", "echo", bytes("x")));
    assert.deepEqual(root.refused, ["edge"], "so does who dials it");
    root.refused.length = 0;
    root.hub.look("edge");
    await until("who looks for it", () => root.refused.length > 0);
  }, { limits: { deadMs: 600_000 } })); // by its silence nobody would find it

Deno.test("links: a site that stops as planned is found gone when it has", () =>
  pair(async (root, edge) => {
    await edge.hub.close();
    await until("the root finds it gone", () => root.refused.includes("edge"));
  }));

Deno.test("links: a partition does not look like a process that is gone (WI1, WI2)", () =>
  pair(async (root, edge, process) => {
    root.hub.control.cut("edge");
    edge.hub.control.cut("root");
    process.kill();
    root.hub.look("edge");
    await new Promise((resolve) => setTimeout(resolve, 150));
    assert.deepEqual(root.refused, [], "nothing is known of it while it is cut off");
    root.hub.control.healAll();
    await until("it is found gone when the link heals", () => root.refused.includes("edge"));
  }));

Deno.test("links: a site whose link broke, and that listens, is not found gone (WI1)", () =>
  pair(async (root, edge) => {
    root.hub.dismiss("edge", "its link breaks");
    await until(
      "the link is up again",
      () => edge.events.filter((event) => event === "+root parent").length > 1,
    );
    root.hub.look("edge");
    root.hub.look("nobody");
    await root.hub.request("edge", "echo", bytes("x"));
    assert.deepEqual(root.refused, []);
  }));

Deno.test("links: a site that is looked at, and listens, takes nobody for a stranger", () =>
  withSites(TCP, async (start) => {
    const one = start({ site: "one" }), other = start({ site: "other" });
    for (let i = 0; i < 5; i++) {
      one.hub.look("other");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await one.hub.request("other", "echo", bytes("x"));
    assert.deepEqual([one.refused, other.hub.status().refused], [[], 0]);
  }));
