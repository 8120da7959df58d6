/** Hosts of an app's own: what can be one, who has it, and where its requests go. */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { addressOf } from "../../../runtime/gateway/address.ts";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { parseHost } from "../../../runtime/deploy/hosts.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import { MemorySystem } from "./memory_system.ts";

Deno.test("a host is kept as browsers send it, and what is none is refused (HN2)", () => {
  const rows: [string, string | RegExp][] = [
    ["shop.example", "shop.example"],
    ["Shop.EXAMPLE", "shop.example"],
    ["shop.example:8443", "shop.example"],
    ["shop.example.", "shop.example"],
    [" shop.example ", "shop.example"],
    ["Käse.example", "xn--kse-qla.example"],
    ["xn--kse-qla.example", "xn--kse-qla.example"],
    ["intranet", "intranet"],
    ["", /can't be a host/],
    ["shop.example/x", /such as shop\.example/],
    ["http://shop.example", /such as shop\.example/],
    ["ann@shop.example", /such as shop\.example/],
    ["*.example", /such as shop\.example/],
    ["shop_1.example", /such as shop\.example/],
    ["shop..example", /such as shop\.example/],
    ["-shop.example", /such as shop\.example/],
    [`${"a".repeat(64)}.example`, /such as shop\.example/],
    [`${"a.".repeat(130)}example`, /such as shop\.example/],
    ["shop.example:99999", /such as shop\.example/],
    ["127.0.0.1", /an address/],
    ["0x7f.1", /an address/],
    ["[::1]", /such as shop\.example/],
    ["localhost", /APP\.localhost/],
    ["book.localhost:80", /APP\.localhost/],
  ];
  for (const [text, expected] of rows) {
    const parsed = parseHost(text);
    if (typeof expected === "string") assert.deepEqual(parsed, { host: expected }, text);
    else assert.match("message" in parsed ? parsed.message : JSON.stringify(parsed), expected, text);
  }
});

Deno.test("a request for a host of an app's own is the app's, but for the platform's paths (GA0)", () => {
  const hosts = new Map([["shop.example", "shop"], ["intranet", "inside"]]);
  const rows: [string, string][] = [
    ["http://shop.example/", "shop  /"],
    ["http://Shop.Example:8000/book/x?q=1", "shop  /book/x?q=1"],
    ["http://shop.example./x", "shop  /x"],
    ["https://intranet", "inside  /"],
    ["http://other.example/book/x", "book /book /x"],
    ["http://shop.example.evil/book/x", "book /book /x"],
    ["http://book.localhost/x", "book  /x"],
    ["http://shop.example/_sojourn/admin/apps", "platform /_sojourn/admin/apps"],
    ["http://shop.example/_sojourn", "platform /_sojourn"],
  ];
  for (const [url, expected] of rows) {
    const at = addressOf(url, hosts);
    const shown = at.kind === "app"
      ? `${at.app} ${at.prefix} ${at.target}`
      : `${at.kind} ${at.kind === "platform" ? at.path : ""}`;
    assert.equal(shown, expected, url);
  }
});

async function setUp() {
  const system = new MemorySystem();
  const deployments = new Deployments({
    system,
    evaluate: () => Promise.resolve({ ok: true, manifest: {} }),
    nowMs: () => 1,
  });
  for (const app of ["shop", "other"]) {
    assert((await deployments.deploy({ bundle: new TextEncoder().encode(app), app })).ok);
  }
  await system.write([{
    kind: "set",
    key: packKey(["s", "site", "edge-1"]),
    value: encodeSystem({ id: "edge-1", url: "https://edge-1.example:8000" }),
  }]);
  const table = await AppTable.open(system);
  return { system, deployments, table };
}

Deno.test("a host belongs to one app, until that gives it back (HN1)", async () => {
  const { deployments, table } = await setUp();
  const { hosts } = deployments;
  const codeOf = async (change: ReturnType<typeof hosts.add>) => {
    const result = await change;
    return result.ok ? result.changed : result.code;
  };
  assert.equal(await codeOf(hosts.add("shop", "Shop.example:80")), true);
  assert.equal(await codeOf(hosts.add("shop", "shop.example")), false);
  assert.equal(await codeOf(hosts.add("other", "shop.example.")), "host_taken");
  assert.equal(await codeOf(hosts.add("other", "edge-1.example")), "host_taken");
  assert.equal(await codeOf(hosts.add("nobody", "b.example")), "app_unknown");
  assert.equal(await codeOf(hosts.add("shop", "10.0.0.1")), "deploy_invalid");
  await table.refresh();
  assert.deepEqual([...table.hosts], [["shop.example", "shop"]]);
  await deployments.deploy({ bundle: new TextEncoder().encode("next"), app: "shop" });
  await table.refresh();
  assert.deepEqual([...table.hosts], [["shop.example", "shop"]], "a deploy keeps hosts");
  assert.equal(await codeOf(hosts.remove("other", "shop.example")), "host_unknown");
  assert.equal(await codeOf(hosts.remove("shop", "SHOP.example")), true);
  assert.equal(await codeOf(hosts.remove("shop", "shop.example")), "host_unknown");
  assert.equal(await codeOf(hosts.add("other", "shop.example")), true);
  await table.refresh();
  assert.deepEqual([...table.hosts], [["shop.example", "other"]]);
  table.close();
});

Deno.test("two apps that ask for a host at once do not both get it", async () => {
  const { deployments: { hosts }, table } = await setUp();
  const results = await Promise.all([hosts.add("shop", "a.example"), hosts.add("other", "a.example")]);
  assert.deepEqual(results.map((result) => result.ok), [true, false]);
  table.close();
});
