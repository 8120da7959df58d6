/** Isolates for random programs (programs.ts), of this tree or of one with something broken in it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bundleApp, fromFileUrl, runDenoBundle } from "../../../runtime/bundle/mod.ts";
import { bootstrapFile } from "../../../runtime/isolate/bootstrap_file.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import type { Bench } from "./programs.ts";

const ROOT = fromFileUrl(new URL("../../../", import.meta.url));

/** One place of the recorder, broken. */
export interface Broken {
  readonly file: string;
  readonly text: string;
  readonly by: string;
}

/** Runs something with two homes and a place for replays. */
export async function withBench(broken: Broken | null, run: (bench: Bench) => Promise<void>): Promise<void> {
  const folder = broken === null ? undefined : await Deno.makeTempDir({ prefix: "sojourn-broken-" });
  if (broken !== null && folder !== undefined) await breakIt(broken, folder);
  const bundled = await bundleApp(fromFileUrl(new URL("programs_app.ts", import.meta.url)));
  if (bundled.kind === "failed") throw new Error(bundled.message);
  const files = folder === undefined ? {} : { cacheFolder: join(folder, "isolates") };
  const pool = (site: string) => new StatefulPool({ site, log: () => {}, note: () => {}, ...files });
  const pools = [pool("edge-1"), pool("edge-2"), pool("edge-3")] as const;
  const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 2_000 } });
  const [a, b, replays] = pools;
  try {
    await run({ app, homes: [a, b], replays });
  } finally {
    await Promise.all(pools.map((each) => each.close()));
    if (folder !== undefined) await Deno.remove(folder, { recursive: true });
  }
}

/** Puts a bootstrap of broken sources where the pools look for one. */
async function breakIt({ file, text, by }: Broken, folder: string): Promise<void> {
  const path = await bootstrapFile("stateful", join(folder, "isolates"));
  for (const each of ["functions", "store", "runtime/bundle", "runtime/isolate"]) {
    await copyFolder(join(ROOT, each), join(folder, each));
  }
  await Deno.copyFile(join(ROOT, "deno.json"), join(folder, "deno.json"));
  const source = await Deno.readTextFile(join(folder, file));
  assert.ok(source.includes(text), `${file} has no ${text}`);
  await Deno.writeTextFile(join(folder, file), source.replace(text, by));
  const entry = join(folder, "runtime/isolate/inside/stateful.ts");
  const outcome = await runDenoBundle({ entry, config: join(folder, "deno.json"), minify: true });
  if (outcome.kind === "failed") throw new Error(outcome.message);
  await Deno.writeFile(path, outcome.code);
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
