/** Ways of those attached have places of their own on a link: they stay, and requests come and go beside them. */
import { strict as assert } from "node:assert";
import { WAY_KINDS } from "../../../runtime/link/limits.ts";
import { MemoryTransport, TCP } from "../../../runtime/link/mod.ts";
import { ORIGIN_WAY_KIND } from "../../../runtime/origins/origin_ends.ts";
import { PEER_KIND } from "../../../functions/sessions/serve/peer_ways.ts";
import { bytes, textOf, withSites } from "./sites.ts";

/** More than the requests that a link takes at once. */
const WAYS = 1_500;

Deno.test("a link takes the ways of all sockets of a site, and requests beside them", () =>
  withSites(TCP, async (start) => {
    const parent = start({ site: "core" });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const open = async (i: number) => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const { head, body } = await child.hub.request("core", PEER_KIND, bytes(`${i}`), { body: readable });
      assert.equal(textOf(head), `${i}`);
      return { writer: writable.getWriter(), body };
    };
    const ways = await Promise.all(Array.from({ length: WAYS }, (_, i) => open(i)));
    assert.equal(textOf((await child.hub.request("core", "echo", bytes("beside them"))).head), "beside them");
    await Promise.all(ways.map(async ({ writer, body }) => {
      await writer.close();
      await body?.cancel();
    }));
  }));

Deno.test("ways and requests are bounded apart, and a place is free again when its way has ended", () =>
  withSites(new MemoryTransport(), async (start) => {
    const limits = { requestsMax: 2, waysMax: 3 };
    const parent = start({ site: "core", limits, request: () => new Promise(() => {}) });
    // This side does not refuse them by itself.
    const child = start({ site: "edge", parent });
    await child.connected("core");
    const given = new AbortController();
    const ask = (kind: string, signal: AbortSignal | null = null) =>
      child.hub.request("core", kind, bytes(""), signal === null ? {} : { signal })
        .catch((error: { code: string }) => error.code);
    const waiting = [ask("echo"), ask("echo"), ask(ORIGIN_WAY_KIND), ask(PEER_KIND)];
    const last = ask(PEER_KIND, given.signal);
    assert.equal(await ask(PEER_KIND), "overloaded");
    assert.equal(await ask("echo"), "overloaded");
    given.abort();
    assert.equal(await last, "cancelled");
    const again = ask(PEER_KIND);
    assert.equal(await ask(PEER_KIND), "overloaded", "the place that was free is taken");
    await parent.hub.close();
    for (const one of [...waiting, again]) assert.equal(await one, "closed");
  }));

Deno.test("links know the kinds of all requests that stay open", () => {
  assert.deepEqual([...WAY_KINDS].sort(), [ORIGIN_WAY_KIND, PEER_KIND].sort());
});
