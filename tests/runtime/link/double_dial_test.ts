/** Two peers that dial each other, where one dial takes its time (hub.ts LU1). */
import assert from "node:assert/strict";
import { MemoryTransport, type Transport } from "../../../runtime/link/mod.ts";
import { bytes, until, withSites } from "./sites.ts";

/** Connections in memory; one that is dialled at a held address is made when it is let go. */
class HeldDials implements Transport {
  readonly #network = new MemoryTransport();
  readonly #held = new Map<string, Promise<void>>();
  /** Dialled connections that were closed again, by address. */
  readonly closed: string[] = [];

  hold(address: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.set(address, promise);
    return resolve;
  }

  listen(at: { readonly hostname: string; readonly port: number }) {
    return this.#network.listen(at);
  }

  async dial(address: string) {
    await this.#held.get(address);
    const connection = await this.#network.dial(address);
    return {
      read: (into: Uint8Array) => connection.read(into),
      write: (from: Uint8Array) => connection.write(from),
      close: () => {
        this.closed.push(address);
        connection.close();
      },
    };
  }
}

Deno.test("a peer's late dial is refused as a double: it is no stranger, and nobody waits for it (LU1)", async () => {
  const transport = new HeldDials();
  await withSites(transport, async (start) => {
    const a = start({ site: "a" });
    const b = start({ site: "b" });
    const letGo = transport.hold(a.address);
    await Promise.all([
      b.hub.request("a", "echo", bytes("from b")), // its own dial is held: a's connection serves it
      a.hub.request("b", "echo", bytes("from a")),
    ]);
    letGo();
    await until("the late dial has come to its end", () => transport.closed.includes(a.address));
    await b.hub.request("a", "echo", bytes("again"));
    assert.deepEqual([a.events, b.events], [["+b peer"], ["+a peer"]]);
    assert.deepEqual([a.log, b.log].flat().filter(({ event }) => event !== "link.connected"), []);
    assert.equal(a.hub.status().refused + b.hub.status().refused, 0);
  });
});
