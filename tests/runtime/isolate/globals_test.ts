/** What an app finds on `globalThis`, in both kinds of isolates, held against what Deno has. */
import assert from "node:assert/strict";
import { allowedBuiltins } from "../../../runtime/bundle/builtins.ts";
import { ALLOWED_GLOBALS, ALLOWED_NAVIGATOR } from "../../../runtime/isolate/inside/globals.ts";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf, callOf } from "./apps.ts";

/** Globals of Deno that were looked at and are not for apps. A name that is in neither list is a new one. */
const REFUSED = [
  "BroadcastChannel Cache CacheStorage EventSource ImageBitmapRenderingContext Lock LockManager",
  "NavigatorUAData OffscreenCanvas Storage Worker alert close confirm localStorage prompt",
  "sessionStorage",
].join(" ").split(" ");
/** Of `navigator`. */
const REFUSED_NAVIGATOR = ["gpu", "locks", "userAgentData"];
/** What Deno keeps of `globalThis` as a target of events, and what this runtime and OpenTelemetry's API keep there. */
const SYMBOLS = ["", "[[webidl.brand]]"];
const OWN_SYMBOLS = /^(?:sojourn|opentelemetry)/;
/** Members of `Deno` that an app has: Deno's own, and those that this runtime made. */
const DENO_KEPT = ["build", "errors", "inspect", "noColor", "refTimer", "unrefTimer", "version"];
const DENO_MADE = [
  "AtomicOperation",
  "Kv",
  "KvU64",
  "args",
  "cron",
  "env",
  "openKv",
  "serve",
  "upgradeWebSocket",
];
/** Accessors that can't be taken away: how a process ends that is killed, and one that throws. */
const DENO_FIXED = ["exitCode", "jupyter"];

/** Names of globals, and of what else hangs on them, where a module runs. */
const NAMES = `
  const names = () => ({
    globals: Object.getOwnPropertyNames(globalThis),
    navigator: Object.getOwnPropertyNames(Object.getPrototypeOf(globalThis.navigator)),
    symbols: Object.getOwnPropertySymbols(globalThis).map((symbol) => symbol.description ?? ""),
    gpu: String(navigator.gpu),
    deno: Object.getOwnPropertyNames(Deno),
  });`;

interface Names {
  readonly globals: string[];
  readonly navigator: string[];
  readonly symbols: string[];
  readonly gpu: string;
  readonly deno: string[];
}

const beyond = (names: readonly string[], allowed: ReadonlySet<string>): string[] =>
  names.filter((name) => !allowed.has(name));

Deno.test("an isolate of functions has the globals that are named, and none that comes later (GL1)", async () => {
  const pool = new IsolatePool({ spares: 0 });
  try {
    const app = appOf(`${NAMES}
      const builtins = ${JSON.stringify(allowedBuiltins)};
      export default { async fetch() {
        const before = names();
        // Deno starts some of its own parts with the first of these.
        for (const builtin of builtins) await import(builtin);
        await crypto.subtle.digest("SHA-256", new Uint8Array(1));
        return Response.json([before, names()]);
      } };`);
    const answer = await pool.call(app, callOf("/"));
    assert.equal(answer.kind, "response", JSON.stringify(answer));
    const [before, after] = answer.kind === "response" ? await answer.response.json() as [Names, Names] : [];
    assert.ok(before !== undefined && after !== undefined);
    for (const { globals, navigator, gpu, symbols } of [before, after]) {
      assert.deepEqual(beyond(globals, ALLOWED_GLOBALS), []);
      assert.deepEqual(beyond(navigator, ALLOWED_NAVIGATOR), []);
      assert.equal(gpu, "undefined");
      assert.deepEqual(symbols.filter((name) => !SYMBOLS.includes(name) && !OWN_SYMBOLS.test(name)), []);
    }
    assert.deepEqual(before.globals.filter((name) => /gpu|canvas/i.test(name)), []);
    assert.ok(before.globals.length > 150, `${before.globals.length}`);
  } finally {
    await pool.close();
  }
});

Deno.test("an isolate of stateful sessions has the globals that are named (GL1)", async () => {
  const pool = new StatefulPool({ site: "here", log: () => {}, note: () => {} });
  try {
    const code = `${NAMES}
      const allowed = new Set(${JSON.stringify([...ALLOWED_GLOBALS])});
      const { globals, gpu } = names();
      const more = globals.filter((name) => !allowed.has(name));
      if (more.length > 0 || gpu !== "undefined" || globals.length < 100) throw new Error("more: " + more + gpu);
      export default { sessions: {}, fetch() {} };`;
    await pool.tryLoad(new TextEncoder().encode(code));
  } finally {
    await pool.close();
  }
});

Deno.test("this version of Deno has no global that nobody has looked at", async () => {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", `${NAMES} console.log(JSON.stringify(names()))`],
    env: { NO_COLOR: "1" },
    stderr: "null",
  }).output();
  assert.ok(success);
  const { globals, navigator, symbols, gpu } = JSON.parse(new TextDecoder().decode(stdout)) as Names;
  const isKnown = (name: string) =>
    ALLOWED_GLOBALS.has(name) || REFUSED.includes(name) || name.startsWith("GPU");
  assert.deepEqual(
    globals.filter((name) => !isKnown(name)),
    [],
    "look at it, and name it in one of the lists",
  );
  assert.deepEqual(REFUSED.filter((name) => !globals.includes(name)), [], "it has gone");
  assert.deepEqual(
    navigator.filter((name) => !ALLOWED_NAVIGATOR.has(name) && !REFUSED_NAVIGATOR.includes(name)),
    [],
  );
  assert.deepEqual(symbols.toSorted(), SYMBOLS);
  assert.notEqual(gpu, "undefined", "it is there to be taken away");
});

Deno.test("of Deno's own functions an app has those that are kept, and refusals (realm.ts G1)", async () => {
  const pool = new IsolatePool({ spares: 0 });
  try {
    const app = appOf(`export default { async fetch() {
      const working = [];
      for (const name of Object.getOwnPropertyNames(Deno)) {
        try {
          const value = Deno[name];
          if (typeof value === "function" && !${JSON.stringify(DENO_MADE)}.includes(name)) await value();
          working.push(name);
        } catch (error) {
          if (!/is not available in a function/.test(error.message)) working.push(name);
        }
      }
      return Response.json([working.sort(), Object.getOwnPropertySymbols(Deno).length]);
    } };`);
    const answer = await pool.call(app, callOf("/"));
    assert.equal(answer.kind, "response", JSON.stringify(answer));
    const told = answer.kind === "response" ? await answer.response.json() : null;
    assert.deepEqual(told, [[...DENO_KEPT, ...DENO_MADE, ...DENO_FIXED].toSorted(), 0]);
  } finally {
    await pool.close();
  }
});
