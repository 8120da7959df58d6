/** Static files and source-mapped stacks on a running cluster. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { AdminClient } from "../../runtime/deploy/client.ts";
import { deployModule } from "../../runtime/deploy/upload.ts";
import { ask } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
const CSS = "body { color: red }\n".repeat(200);

/** Line 6 throws, with a cause from line 5; line 10 logs. */
const APP = `import { defineApp, type EnvOf } from "sojourn";
interface Row { name: string }
async function inner(row: Row): Promise<never> {
  await Promise.resolve();
  const cause = new TypeError("deep");
  throw new RangeError("boom " + row.name, { cause });
}
const fetch = async (request: Request, env: EnvOf) => {
  if (request.url.endsWith("/boom")) await inner({ name: "x" });
  if (request.url.endsWith("/log")) console.error(new Error("told"));
  const own = new URL(request.url).searchParams.get("own");
  if (own !== null) return await env.ASSETS.fetch(new URL(own, request.url), { headers: request.headers });
  return new Response("the app: " + new URL(request.url).pathname);
};
export default defineApp({ name: "files", assets: "./public", fetch, routes: { "/*": { at: "root" } } });
`;

async function write(folder: string, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(join(folder, name, ".."), { recursive: true });
    await Deno.writeFile(
      join(folder, name),
      typeof text === "string" ? new TextEncoder().encode(text) : text,
    );
  }
}

/** The bytes of an answer as they came, which `fetch` would unpack. */
async function raw(
  url: string,
  headers: string,
  path = new URL(url).pathname,
): Promise<{ head: string; body: Uint8Array }> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const request = `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`;
  await connection.write(new TextEncoder().encode(request));
  const bytes = new Uint8Array(await new Response(connection.readable, {}).arrayBuffer());
  const end = bytes.findIndex((_, i) => i >= 3 && bytes[i] === 10 && bytes[i - 2] === 10);
  return { head: new TextDecoder().decode(bytes.subarray(0, end)), body: bytes.subarray(end + 1) };
}

async function everywhere(cluster: TestCluster, big: Uint8Array): Promise<void> {
  for (const site of SITES) {
    const url = `${cluster.url(site)}/files`;
    const page = await ask(`${url}/`);
    assert.deepEqual([page.status, page.text], [200, "<p>one</p>"], site);
    assert.equal(page.headers.get("sojourn-site"), site, "served where it arrived, whatever the route says");
    assert.equal(page.headers.get("set-cookie") ?? page.headers.get("sojourn-session"), null);
    const again = await ask(`${url}/`, { headers: { "if-none-match": page.headers.get("etag") ?? "" } });
    assert.deepEqual([again.status, again.text], [304, ""]);
    assert.equal((await ask(`${url}/docs`)).headers.get("location"), "/files/docs/");
    assert.equal((await ask(`${url}?q=//x`)).headers.get("location"), "/files/?q=//x");
    assert.equal((await ask(`${url}/elsewhere`)).text, "the app: /elsewhere");
    assert.equal((await ask(`${url}/.env`)).text, "the app: /.env");
    const own = await ask(`${url}/x?own=/docs/`);
    assert.deepEqual([own.status, own.text], [200, "<p>docs</p>"], site);
    assert.equal((await ask(`${url}/x?own=/docs`)).headers.get("location"), "/files/docs/");
    assert.equal((await ask(`${url}/x?own=/../app.ts`)).status, 404);
    assert.equal((await ask(`${url}/x?own=/style.css`)).text, CSS);
    const part = await fetch(`${url}/big.bin`, { headers: { range: "bytes=1000000-2000000" } });
    assert.equal(part.status, 206, part.status === 206 ? "" : site + await part.text());
    assert.deepEqual(await part.bytes(), big.slice(1_000_000, 2_000_001), site);
    assert.deepEqual(await (await fetch(`${url}/big.bin`)).bytes(), big, site);
  }
}

async function compressed(cluster: TestCluster): Promise<void> {
  const url = `${cluster.url("edge-3")}/files/style.css`;
  const { head, body } = await raw(url, "accept-encoding: gzip, br\r\n");
  assert.match(head, /content-encoding: br/i);
  assert.equal(new TextDecoder().decode(brotliDecompressSync(body)), CSS);
  const plain = await raw(url, "");
  assert.doesNotMatch(plain.head, /content-encoding/i);
  assert.equal(new TextDecoder().decode(plain.body), CSS);
}

/** Paths as no URL parser lets them through, typed into the connection. */
async function hostile(cluster: TestCluster): Promise<void> {
  const { port } = new URL(cluster.url("edge-1"));
  const paths = [
    "..",
    "%2e%2e",
    "..%2f..",
    "%2e%2e%2f%2e%2e",
    "..\\..",
    "..%5c..",
    "%252e%252e%252f",
    ".%00.",
    "//etc",
  ]
    .flatMap((climb) =>
      ["app.ts", "etc/passwd", "public/.env", ".env"].map((name) => `/files/${climb}/${name}`)
    );
  for (const path of [...paths, "/files/.env", "/files/%2eenv", "/files//etc/passwd", "/files/STYLE.CSS"]) {
    const { head, body } = await raw(`http://127.0.0.1:${port}${path}`, "", path);
    const text = new TextDecoder().decode(body);
    assert.match(head, /^HTTP\/1\.1 [1-5]\d\d /, path);
    assert.doesNotMatch(text, /defineApp|root:|SECRET|color: red/, path);
  }
}

/** With the root away a site has what it has; what it never had is a problem that passes. */
async function rootAway(cluster: TestCluster, big: Uint8Array): Promise<void> {
  await cluster.control("kill", "cloud");
  const url = `${cluster.url("edge-3")}/files`;
  assert.equal((await ask(`${url}/`)).text, "<p>two</p>");
  assert.deepEqual(await (await fetch(`${url}/big.bin`)).bytes(), big);
  assert.equal((await ask(`${url}/rare.txt`, { method: "HEAD" })).headers.get("content-length"), "4");
  const rare = await ask(`${url}/rare.txt`);
  assert.deepEqual([rare.status, JSON.parse(rare.text).code], [503, "store_unreachable"]);
  await cluster.control("start", "cloud");
  await eventually("the file arrives", async () => (await ask(`${url}/rare.txt`)).text === "rare");
}

/** A further version sends only what is new; a preview, a rollback and other versions each have their own files. */
async function versions(cluster: TestCluster, app: string): Promise<void> {
  const url = `${cluster.url("edge-1")}/files/`;
  const first = (await ask(url)).headers.get("sojourn-version") ?? "";
  await write(app, { "public/index.html": "<p>two</p>" });
  const client = new AdminClient({ url: cluster.url("edge-2"), token: cluster.adminToken });
  const sent: string[] = [];
  const put = client.putBlob.bind(client);
  client.putBlob = (digest, bytes) => {
    sent.push(new TextDecoder().decode(bytes.subarray(0, 20)));
    return put(digest, bytes);
  };
  const upload = { module: join(app, "app.ts"), fallback: "x", waitMs: 30_000 };
  const second = await deployModule(upload, client);
  assert.deepEqual(second.missing, []);
  assert.equal(sent.length, 2, sent.join(" | ")); // the page and the index
  for (const site of SITES) {
    assert.equal((await ask(`${cluster.url(site)}/files/`)).text, "<p>two</p>", site);
    const preview = await ask(`${cluster.url(site)}/files/`, { headers: { "sojourn-version": first } });
    assert.equal(preview.text, "<p>one</p>", site);
  }
  await client.rollback("files", first, 30_000);
  for (const site of SITES) assert.equal((await ask(`${cluster.url(site)}/files/`)).text, "<p>one</p>", site);
  await client.rollback("files", second.version, 30_000);
}

/** Stacks name lines of the module, in the problem and in the log. */
async function stacks(cluster: TestCluster): Promise<void> {
  const { status, text } = await ask(`${cluster.url("edge-1")}/files/boom`);
  assert.equal(status, 502);
  const { stack } = JSON.parse(text) as { stack: string };
  assert.match(
    stack,
    /RangeError: boom x\n +at inner \(app\.ts:6:9\)\n +at async Object\.fetch \(app\.ts:9:38\)/,
  );
  assert.match(stack, /Caused by: TypeError: deep\n +at inner \(app\.ts:5:17\)/);
  await ask(`${cluster.url("edge-1")}/files/log`);
  const lines = [
    /RangeError: boom x\\n +at inner \(app\.ts:6:9\).*Caused by: TypeError: deep\\n +at inner \(app\.ts:5:17\)/,
    /Error: told\\n +at (?:async )?(?:Object\.)?fetch \(app\.ts:10:\d+\)/,
  ];
  for (const line of lines) {
    await eventually(`the log has ${line}`, () => Promise.resolve(line.test(cluster.log())));
  }
}

/** The app, in a folder that goes with it. */
export class FilesApp implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "sojourn-files-" });
  readonly big = new Uint8Array(3_000_000);

  static async make(): Promise<FilesApp> {
    const app = new FilesApp(), { big } = app;
    for (let at = 0; at < big.length; at += 50_000) crypto.getRandomValues(big.subarray(at, at + 50_000));
    await write(app.folder, {
      "app.ts": APP,
      "public/index.html": "<p>one</p>",
      "public/docs/index.html": "<p>docs</p>",
      "public/style.css": CSS,
      "public/big.bin": big,
      "public/.env": "SECRET=1",
      "public/rare.txt": "rare",
    });
    return app;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Walks over a cluster whose `dev` has the app; its root is away for a while. */
export async function walkAssets(
  cluster: TestCluster,
  { folder, big }: FilesApp,
  t: Deno.TestContext,
): Promise<void> {
  await t.step("every site serves every file, and the app the rest", () => everywhere(cluster, big));
  await t.step("compressed where the client takes it", () => compressed(cluster));
  await t.step("no path reaches another file", () => hostile(cluster));
  await t.step("stacks name the author's lines", () => stacks(cluster));
  await t.step("a changed file redeploys; versions keep their own", async () => {
    await write(folder, { "public/docs/index.html": "<p>changed</p>" });
    await eventually(
      "the change is served",
      async () => (await ask(`${cluster.url("edge-3")}/files/docs/`)).text === "<p>changed</p>",
    );
    // From here on by hand: the watching command would deploy each change as well.
    const copy = `${folder}-copy`;
    await new Deno.Command("cp", { args: ["-r", folder, copy] }).output();
    try {
      await versions(cluster, copy);
    } finally {
      await Deno.remove(copy, { recursive: true });
    }
  });
  await t.step("with the root away, what is here is served", () => rootAway(cluster, big));
}
