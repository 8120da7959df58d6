/** What a site takes of others while its links are held: nothing, but for what it is told apart by (runtime/link/hold.ts). */
import { strict as assert } from "node:assert";
import { Hold, MemoryTransport } from "../../../runtime/link/mod.ts";
import { bytes, textOf, until, withSites } from "./sites.ts";

const ADMIN = "admin";

function holding() {
  const hold = new Hold();
  return { hold, gate: (kind: string | null) => kind === ADMIN ? null : hold.passed() };
}

Deno.test("while its links are held a site takes no message, request or answer; after it all, in order (LH1)", () =>
  withSites(new MemoryTransport(), async (start) => {
    const { hold, gate } = holding();
    const served: string[] = [];
    const parent = start({
      site: "core",
      hold: gate,
      request: (_site, request) => {
        served.push(textOf(request.head));
        return Promise.resolve({ head: request.head });
      },
    });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    await child.hub.send("core", bytes("before"));
    await until("it arrives", () => parent.events.includes("edge:before"));
    hold.begin("cut");
    await child.hub.send("core", bytes("one"));
    await child.hub.send("core", bytes("two"));
    const asked = child.hub.request("core", "call", bytes("asked"));
    let isAnswered = false;
    const answer = parent.hub.request("edge", "call", bytes("answered")).then((answer) => {
      isAnswered = true;
      return answer;
    });
    // A call that passes shows that all before it has come.
    assert.equal(textOf((await child.hub.request("core", ADMIN, bytes("admin"))).head), "admin");
    assert.equal(textOf((await parent.hub.request("edge", ADMIN, bytes("admin"))).head), "admin");
    assert.deepEqual([parent.messages.length, served, isAnswered], [1, ["admin"], false]);
    assert.equal(hold.end("another"), false);
    assert.equal(hold.end("cut"), true);
    assert.equal(textOf((await asked).head), "asked");
    assert.equal(textOf((await answer).head), "answered");
    await until("all arrives", () => parent.messages.length === 3);
    assert.deepEqual(parent.messages.map(({ bytes }) => textOf(bytes)), ["before", "one", "two"]);
    hold.close();
  }));

Deno.test("a hold ends by itself, and whoever ends it then is told (LH2)", () =>
  withSites(new MemoryTransport(), async (start) => {
    const { hold, gate } = holding();
    const parent = start({ site: "core", hold: gate });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    hold.begin("cut");
    await child.hub.send("core", bytes("one"));
    await until("it arrives", () => parent.events.includes("edge:one"));
    assert.deepEqual([hold.lasts("cut"), hold.end("cut"), hold.passed()], [false, false, null]);
    hold.close();
  }));

Deno.test("what was held of a link that has ended is not taken after its end", () =>
  withSites(new MemoryTransport(), async (start) => {
    const { hold, gate } = holding();
    const parent = start({ site: "core", hold: gate });
    const child = start({ site: "edge", parent });
    await child.connected("core");
    hold.begin("cut");
    await child.hub.send("core", bytes("one"));
    assert.equal(textOf((await child.hub.request("core", ADMIN, bytes("admin"))).head), "admin");
    await child.hub.close();
    await until("the link is down", () => parent.events.some((event) => event.startsWith("-edge")));
    hold.end("cut");
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(parent.messages, []);
    hold.close();
  }));
