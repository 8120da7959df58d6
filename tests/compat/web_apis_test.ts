/**
 * Web APIs inside an isolate behave as Deno's do: the same bundle of probes (probes/) runs in plain Deno and in an
 * isolate, and what they print is compared. Every difference is in the list below, with its reason, and in
 * docs/compatibility.md; a difference that is gone fails here too.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bundleApp } from "../../runtime/bundle/mod.ts";
import { runBundle } from "./apps.ts";
import { startEcho } from "./echo_server.ts";
import { pageSection, rowNames } from "./page.ts";

type Answers = Readonly<Record<string, string>>;

const PROBES = join(import.meta.dirname ?? ".", "probes");

/** Probes that answer something else inside an isolate, and why. */
const DIFFERENT: Readonly<Record<string, string>> = {
  "incoming request":
    "`redirect` of an incoming request is a request's default; Deno's server leaves it undefined",
  "console methods": "the console is the site's log: no `context` and `createTask`, which need a debugger",
  "fetch decodes gzip": "a decoded response no longer names encoding and length, so that it can be passed on",
  "global names": "see the names below",
};

/**
 * Globals of Deno that an isolate has not: they end the process, block it, reach out of it, or load native code that
 * functions have no use for. What another version of Deno adds is missing here, until it has been looked at.
 */
const ABSENT = [
  "BroadcastChannel",
  "Cache",
  "CacheStorage",
  "EventSource",
  "GPU",
  "GPUAdapter",
  "GPUAdapterInfo",
  "GPUBindGroup",
  "GPUBindGroupLayout",
  "GPUBuffer",
  "GPUBufferUsage",
  "GPUCanvasContext",
  "GPUColorWrite",
  "GPUCommandBuffer",
  "GPUCommandEncoder",
  "GPUCompilationInfo",
  "GPUCompilationMessage",
  "GPUComputePassEncoder",
  "GPUComputePipeline",
  "GPUDevice",
  "GPUDeviceLostInfo",
  "GPUError",
  "GPUInternalError",
  "GPUMapMode",
  "GPUOutOfMemoryError",
  "GPUPipelineError",
  "GPUPipelineLayout",
  "GPUQuerySet",
  "GPUQueue",
  "GPURenderBundle",
  "GPURenderBundleEncoder",
  "GPURenderPassEncoder",
  "GPURenderPipeline",
  "GPUSampler",
  "GPUShaderModule",
  "GPUShaderStage",
  "GPUSupportedFeatures",
  "GPUSupportedLimits",
  "GPUTexture",
  "GPUTextureUsage",
  "GPUTextureView",
  "GPUUncapturedErrorEvent",
  "GPUValidationError",
  "ImageBitmapRenderingContext",
  "Lock",
  "LockManager",
  "NavigatorUAData",
  "OffscreenCanvas",
  "Storage",
  "Worker",
  "alert",
  "close",
  "confirm",
  "localStorage",
  "prompt",
  "sessionStorage",
];
/** Globals of Workers that Deno has not. */
const ADDED = ["WebSocketPair", "scheduler"];

async function answersOfDeno(code: Uint8Array, echo: string): Promise<Answers> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    const path = join(folder, "bundle.js");
    await Deno.writeFile(path, code);
    const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--no-config", join(PROBES, "plain.ts"), `file://${path}`, echo],
      env: { NO_COLOR: "1" },
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    return JSON.parse(new TextDecoder().decode(stdout));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("Web APIs inside an isolate answer what Deno's answer, but for what is listed", async () => {
  await using echo = startEcho();
  const bundle = await bundleApp(join(PROBES, "app.ts"));
  assert.equal(bundle.kind, "bundled", JSON.stringify(bundle));
  if (bundle.kind !== "bundled") return;
  await using app = runBundle(new TextDecoder().decode(bundle.code), {
    mayFetch: [`127.0.0.1:${echo.port}`],
  });
  const request = new Request(`http://127.0.0.1/?echo=${echo.url}`, { headers: { "x-probe": "here" } });
  const inside = await (await app.fetch(request)).json() as Answers;
  const plain = await answersOfDeno(bundle.code, echo.url);

  assert.deepEqual(Object.keys(inside), Object.keys(plain));
  const count = Object.keys(plain).length;
  assert.match(await pageSection("### Web APIs"), new RegExp(`one bundle of ${count} probes`));
  const different = Object.keys(plain).filter((name) => plain[name] !== inside[name]);
  for (const name of different) {
    assert.ok(name in DIFFERENT, `${name}\n  in Deno:    ${plain[name]}\n  in isolate: ${inside[name]}`);
  }
  assert.deepEqual(
    different.toSorted(),
    Object.keys(DIFFERENT).toSorted(),
    "a difference is listed that is none",
  );
  const [ours, theirs] = [inside, plain].map((answers) =>
    new Set((answers["global names"] ?? "").split(" "))
  );
  assert.deepEqual([...theirs ?? []].filter((name) => !ours?.has(name)).toSorted(), ABSENT);
  assert.deepEqual([...ours ?? []].filter((name) => !theirs?.has(name)).toSorted(), ADDED);
});

Deno.test("the page on compatibility lists the differences of the Web APIs", async () => {
  const section = await pageSection("### Web APIs");
  assert.deepEqual(rowNames(section).toSorted(), Object.keys(DIFFERENT).toSorted());
  for (const name of [...ABSENT, ...ADDED]) {
    const told = name.startsWith("GPU") ? "GPU…" : name;
    assert.ok(section.includes(`\`${told}\``), name);
  }
});
