/** What the code of a stateful session can reach, held against the list that says of each member what it is. */
import assert from "node:assert/strict";
import { bundleApp, fromFileUrl } from "../../../runtime/bundle/mod.ts";
import { guardedMembers, TRANSFERS } from "../../../runtime/isolate/inside/guarded.ts";
import { ALLOWED_GLOBALS } from "../../../runtime/isolate/inside/globals.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { parseRealmList } from "./realm_list.ts";
import { TestHome } from "./stateful_home.ts";

/** What this runtime puts where Deno has nothing. */
const OURS = [
  ...["Error.prepareStackTrace", "SubtleCrypto.prototype.timingSafeEqual"],
  // Made with the first hash, which here there has been (stateful_imports.ts).
  ...["_readableState", "_writableState"].map((name) => `node:crypto.Hash.prototype.__proto__.${name}`),
];
/** In other words, and the same: what asks first (guarded.ts), and what tells of something. */
const REWORDED: ReadonlySet<string> = new Set([
  ...guardedMembers().flatMap(([name, members]) =>
    members.map((each) => `${name}.prototype.${String(each).replace(/^Symbol\(Symbol\.(.*)\)$/, "@@$1")}`)
  ),
  ...TRANSFERS.map(([name, method]) => `${name}.prototype.${method}`),
  ...["structuredClone", "TextDecoder.prototype.decode", "Intl.Segmenter.prototype.segment"],
  // Definitions are told (stateful_realm.ts), rejections too; and responses that `fetch` gave (fetched_response.ts).
  ...[
    "Object.defineProperty",
    "Object.defineProperties",
    "Reflect.defineProperty",
    "Error.captureStackTrace",
  ],
  ...["Object.prototype.__defineGetter__", "Object.prototype.__defineSetter__", "Promise.prototype.then"],
  ...["clone", "redirected", "type", "url"].map((name) => `Response.prototype.${name}`),
  // So are failures that node's modules keep to themselves; and what all share asks (stateful_imports.ts).
  ...["assert", "assert.default", "assert.strict", "assert/strict", "assert.Assert.prototype"].flatMap((
    name,
  ) => ["throws", "doesNotThrow"].map((each) => `node:${name}.${each}`)),
  ...["subscribe", "unsubscribe", "bindStore", "unbindStore"].map((name) =>
    `node:diagnostics_channel.Channel.prototype.${name}`
  ),
  ...["Duplex", "Readable", "Writable"].map((name) => `node:stream.${name}.prototype.destroy`),
  ...["stream", "stream.Stream"].map((name) => `node:${name}.setDefaultHighWaterMark`),
]);
/** Of several paths to one function, those that are apart in a session: each is replaced by itself. */
const APART = [
  "node:crypto.createDiffieHellmanGroup",
  "node:timers.promises.setImmediate",
  "node:timers.promises.setInterval",
  "node:timers.promises.setTimeout",
];
const REFUSES = /not available|in a stateful session|never rests|works in a handler/;

interface DenoRealm {
  readonly paths: string[];
  readonly aliases: string[][];
  readonly sources: string[];
}

const here = (name: string): string => fromFileUrl(new URL(name, import.meta.url));
const kinds = parseRealmList(await Deno.readTextFile(here("session_realm.txt")));

async function denoRealm(): Promise<DenoRealm> {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--config", here("../../../deno.json"), here("realm_main.ts")],
    stderr: "inherit",
  }).output();
  assert.ok(success);
  return JSON.parse(new TextDecoder().decode(stdout)) as DenoRealm;
}

async function withSession(work: (home: TestHome) => Promise<void>): Promise<void> {
  const bundled = await bundleApp(here("realm_app.ts"));
  if (bundled.kind === "failed") throw new Error(bundled.message);
  const pool = new StatefulPool({ site: "here", hasSpare: false, log: () => {}, note: () => {} });
  try {
    const home = new TestHome(pool, appOf(new TextDecoder().decode(bundled.code)), "a", "realm");
    await home.open();
    await work(home);
  } finally {
    await pool.close();
  }
}

Deno.test("all that the code of a stateful session reaches is on the list, and is what the list says (stateful_realm.ts SR1)", async () => {
  const deno = await denoRealm();
  assert.ok(deno.paths.length > 2_500, `${deno.paths.length}`);
  const beyond = deno.paths.filter((path) => !kinds.has(path));
  assert.deepEqual(beyond, [], "look at it, and say in session_realm.txt what it is");
  const there = new Set(deno.paths);
  assert.deepEqual([...kinds.keys()].filter((path) => !there.has(path)), [], "Deno has it no more");

  await withSession(async (home) => {
    const own = new Set(await home.value("paths", [...ALLOWED_GLOBALS]) as string[]);
    assert.deepEqual([...own].filter((path) => !there.has(path)).toSorted(), OURS.toSorted());
    const gone = deno.paths.filter((path) => !own.has(path));
    assert.deepEqual(gone.filter((path) => kinds.get(path) !== "absent"), []);
    const absent = deno.paths.filter((path) => kinds.get(path) === "absent" && own.has(path));
    const said = await home.value("refusals", absent) as string[];
    assert.deepEqual(
      absent.flatMap((path, i) => REFUSES.test(said[i] ?? "") ? [] : [`${path}: ${said[i]}`]),
      [],
    );

    // What is replaced is said to be; and what is said to be replaced is.
    const sources = await home.value("sources", deno.paths) as string[];
    const isReplaced = (i: number) => sources[i] !== deno.sources[i];
    const pure = deno.paths.filter((path, i) => kinds.get(path) === "pure" && isReplaced(i));
    assert.deepEqual(pure.filter((path) => !REWORDED.has(path)), []);
    const kept = deno.paths.filter((path, i) =>
      /recorded|pinned/.test(kinds.get(path) ?? "") && !isReplaced(i)
    );
    assert.deepEqual(kept, []);

    // Nor is what it replaces reached by another way.
    const apart = await home.value("apart", deno.aliases) as string[][];
    assert.deepEqual(apart.map(([first]) => first), APART);
  });
});
