import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EnvFile } from "./env_file.ts";

const VALUE = "a value that nobody is to see";

/** A site that keeps secrets, of which some are declared; `breaks`: it answers with what it was sent. */
function secretsSite(declared: readonly string[]) {
  const kept = new Map<string, { value: string; from: string }>();
  const state = { breaks: false };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { pathname, searchParams } = new URL(request.url), name = pathname.split("/").at(-1) ?? "";
    const about = { tier: "everywhere", declared: declared.includes(name) };
    switch (request.method) {
      case "PUT": {
        const value = await request.text(), changed = kept.get(name)?.value !== value;
        if (state.breaks) return new Response(value, { headers: { "content-type": "application/json" } });
        kept.set(name, { value, from: searchParams.get("from") ?? "" });
        return Response.json({ ...about, app: "shop", name, changed, stamp: "1", redacted: true });
      }
      case "DELETE":
        kept.delete(name);
        return new Response(null, { status: 204 });
    }
    return Response.json([...new Set([...declared, ...kept.keys()])].map((each) => ({
      ...{ name: each, setMs: kept.has(each) ? 1 : null, tier: "everywhere", readable: true },
      ...{ declared: declared.includes(each), from: kept.get(each)?.from ?? null },
    })));
  });
  return { kept, state, url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

/** The `.env` file of an app at that site, and what is said of it. */
async function envFile(site: { readonly url: string }) {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  const said: string[] = [];
  const file = new EnvFile(folder, { url: site.url, token: "x" }, (line) => said.push(line));
  const write = (text: string) => Deno.writeTextFile(join(folder, ".env"), text, { mode: 0o600 });
  return { file, said, write, close: () => Deno.remove(folder, { recursive: true }) };
}

Deno.test("names that an app declares are set from its .env file, and others are told of once, and left (E1)", async () => {
  const site = secretsSite(["KEY"]), { file, said, write, close } = await envFile(site);
  await write(`KEY=${VALUE}\nOTHER=${VALUE}\n`);
  for (let times = 0; times < 2; times++) await file.apply("shop");
  assert.deepEqual([...site.kept], [["KEY", { value: VALUE, from: "dotenv" }]]);
  assert.equal(said.filter((line) => line.includes("does not declare OTHER")).length, 1);
  await close();
  await site.close();
});

Deno.test("a name that leaves the .env file has no value any more, unless a command set it (E2)", async () => {
  const site = secretsSite(["KEY", "OTHER", "THIRD"]), { file, write, close } = await envFile(site);
  site.kept.set("THIRD", { value: VALUE, from: "command" });
  await write(`KEY=${VALUE}\nOTHER=${VALUE}\n`);
  await file.apply("shop");
  assert.deepEqual([...site.kept.keys()].sort(), ["KEY", "OTHER", "THIRD"]);
  await write(`OTHER=${VALUE}\n`);
  await file.apply("shop");
  assert.deepEqual([...site.kept.keys()].sort(), ["OTHER", "THIRD"]);
  await close();
  await site.close();
});

Deno.test("what is said of a .env file has no value in it, done or failed (E3)", async () => {
  const site = secretsSite(["KEY"]), { file, said, write, close } = await envFile(site);
  await write(`KEY=${VALUE}\nOTHER=${VALUE}\n`);
  await file.apply("shop");
  assert.match(said.join("\n"), /shop: KEY set from/);
  site.state.breaks = true;
  await write(`KEY=${VALUE} 2\n`);
  await file.apply("shop");
  assert.match(said.join("\n"), /the secrets stay as they were/);
  site.state.breaks = false;
  await write("");
  await file.apply("shop");
  assert.match(said.join("\n"), /KEY has no value any more/);
  assert.ok(!said.join("\n").includes(VALUE), said.join("\n"));
  await close();
  await site.close();
});
