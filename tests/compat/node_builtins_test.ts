/** Node built-ins in an app: which are there, and which are refused. */
import assert from "node:assert/strict";
import { scryptSync } from "node:crypto";
import { allowedBuiltins } from "../../runtime/bundle/builtins.ts";
import { bundleText, runApp, runBundle } from "./apps.ts";
import { pageSection } from "./page.ts";

const NODE = `
  import assert from "node:assert";
  import { AsyncLocalStorage } from "node:async_hooks";
  import { Buffer } from "node:buffer";
  import { createHash, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
  import { channel } from "node:diagnostics_channel";
  import { EventEmitter, once } from "node:events";
  import path from "node:path";
  import win32 from "node:path/win32";
  import querystring from "node:querystring";
  import { Readable, Transform } from "node:stream";
  import { text } from "node:stream/consumers";
  import { pipeline } from "node:stream/promises";
  import { StringDecoder } from "node:string_decoder";
  import { setTimeout as later } from "node:timers/promises";
  import { setImmediate } from "node:timers";
  import { fileURLToPath, parse } from "node:url";
  import { format, inspect, promisify } from "node:util";
  import { brotliCompressSync, brotliDecompressSync, createGzip, gunzip, gzipSync, inflateRaw, deflateRawSync } from "node:zlib";
  export default { async fetch() {
    const emitter = new EventEmitter();
    const done = once(emitter, "done");
    queueMicrotask(() => emitter.emit("done", 1));
    const said: unknown[] = [];
    channel("mine").subscribe((message) => said.push(message));
    channel("mine").publish("hello");
    const upper = new Transform({ transform: (chunk, _, done) => done(null, String(chunk).toUpperCase()) });
    const piped = text(upper);
    await pipeline(Readable.from(["a", "b"]), upper);
    return Response.json({
      assert: (() => { try { assert.deepStrictEqual([1], [2]); } catch (error) { return (error as Error).name; } })(),
      async_hooks: new AsyncLocalStorage().run(1, () => 2),
      buffer: Buffer.from("é").toString("base64url"),
      crypto: [createHash("md5").update("a").digest("hex"), randomBytes(4).length, scryptSync("p", "s", 8).toString("hex"), timingSafeEqual(Buffer.from("a"), Buffer.from("a"))],
      diagnostics_channel: said,
      events: await done,
      path: [path.join("/a", "../b"), win32.join("a", "b")],
      querystring: querystring.parse("a=1&a=2"),
      stream: await piped,
      string_decoder: new StringDecoder("utf8").write(Buffer.from([0xc3])),
      timers: [await later(1, "x"), await new Promise((resolve) => setImmediate(() => resolve("y")))],
      url: [parse("http://h:1/p").port, fileURLToPath("file:///a/b")],
      util: [format("%s:%d", "a", 1), inspect({ a: [1] }), await promisify((done: (e: null, v: number) => void) => done(null, 3))()],
      zlib: [
        (await promisify(gunzip)(gzipSync("z"))).toString(),
        brotliDecompressSync(brotliCompressSync("b")).toString(),
        (await promisify(inflateRaw)(deflateRawSync("d"))).toString(),
        (await promisify(gunzip)(Buffer.concat(await Array.fromAsync(Readable.from(["s"]).pipe(createGzip()))))).toString(),
      ],
    });
  } };`;

Deno.test("node built-ins that need no permission work", async () => {
  await using app = await runApp(NODE);
  assert.deepEqual(await (await app.fetch("/")).json(), {
    assert: "AssertionError",
    async_hooks: 2,
    buffer: "w6k",
    crypto: ["0cc175b9c0f1b6a831c399e269772661", 4, scryptSync("p", "s", 8).toString("hex"), true],
    diagnostics_channel: ["hello"],
    events: [1],
    path: ["/b", "a\\b"],
    querystring: { a: ["1", "2"] },
    stream: "AB",
    string_decoder: "",
    timers: ["x", "y"],
    url: ["1", "/a/b"],
    util: ["a:1", "{ a: [ 1 ] }", 3],
    zlib: ["z", "b", "d", "s"],
  });
});

Deno.test("node built-ins with effects are refused where they are imported", async () => {
  for (
    const name of ["fs", "child_process", "net", "http", "os", "worker_threads", "vm", "tty", "module"]
  ) {
    const code =
      `import * as x from "node:${name}"; export default { fetch: () => Response.json(Object.keys(x)) };`;
    await assert.rejects(bundleText(code), new RegExp(`can't import "node:${name}": only its own modules`));
    await using app = runBundle(code); // made elsewhere: looked at again where it is deployed
    await assert.rejects(app.manifest(), /can't import/);
  }
});

Deno.test("the page on compatibility names every node built-in that is there", async () => {
  const section = await pageSection("## Workers");
  const named = [...section.slice(section.indexOf("Node built-ins")).matchAll(/`([a-z_/0-9]+)`/g)].map((
    [, name],
  ) => `node:${name}`);
  assert.deepEqual(allowedBuiltins.filter((name) => !named.includes(name)), []);
});
