import { strict as assert } from "node:assert";
import { cpuUsage } from "node:process";
import type { Tier } from "../../functions/define.ts";
import { tierMatcher } from "./route_tiers.ts";

const PATTERNS = [
  "/login/*",
  "/a",
  "/a*",
  "/a/",
  "/*",
  "/a/:id",
  "/a.b",
  "/x/*/y",
  "/A/*",
  "/a/b.*",
  "/",
  "/.a",
];
const PATHS = [
  ..."/ /a /a/ /ab /a/b /a/b/c /login /login/ /login/x /x/1/y /A/x /a.b /a/b. /a/../login/x /login/../a"
    .split(" "),
  ..."/%61 /login%2fx /a/./b /a//b //a /a/.b /.a /.. /a/b.c /é /a/é /a?b /a#b /login/%2e%2e/a".split(" "),
];

Deno.test("tierMatcher says what URLPattern says when a path is plain, odd or hostile (TR1)", () => {
  for (const pattern of PATTERNS) {
    const tierOf = tierMatcher({ [pattern]: { at: "root" } });
    const truth = new URLPattern({ pathname: pattern });
    for (const pathname of PATHS) {
      const expected = truth.test({ pathname }) ? "root" : "edge";
      assert.equal(tierOf(pathname), expected, `${pattern} on ${pathname}`);
    }
  }
});

Deno.test("tierMatcher takes the first route when several match", () => {
  const tierOf = tierMatcher({ "/a/b": { at: "core" }, "/a/:id": { at: "root" }, "/*": { at: "edge" } });
  assert.deepEqual(["/a/b", "/a/c", "/c"].map(tierOf), ["core", "root", "edge"]);
});

Deno.test("a route that can't be read matches nothing, is noted, and hides no other (TR2)", () => {
  const ignored: string[] = [];
  const tierOf = tierMatcher(
    { "/(": { at: "root" }, "/:": { at: "root" }, "/a/:id": { at: "core" } },
    (pattern) => ignored.push(pattern),
  );
  assert.deepEqual(ignored, ["/(", "/:"]);
  assert.deepEqual(["/(", "/:", "/x", "/a/b"].map(tierOf), ["edge", "edge", "edge", "core"]);
});

Deno.test("what a path costs is bounded over all patterns of an app: those that there is no time for match nothing, and are told (TR3, RP4)", () => {
  const routes: Record<string, { at: Tier }> = {};
  for (let i = 0; i < 64; i++) routes[`/a${"*a".repeat(160 - i)}`] = { at: "root" };
  const ignored: string[] = [];
  const tierOf = tierMatcher(routes, (pattern) => ignored.push(pattern));
  const path = `/${Array.from({ length: 4_000 }, (_, i) => "ab-"[i * i % 7 % 3]).join("")}`;
  const begunMs = cpuMs();
  assert.equal(tierOf(path), "edge");
  const ms = cpuMs() - begunMs;
  assert.ok(ms < 1_500, `${ms.toFixed(0)} ms`);
  assert.ok(ignored.length >= 60, `${ignored.length} are left out`);
  const plain = Object.fromEntries(
    Array.from({ length: 64 }, (_, i) => [`/part${i}/:user/posts/:post`, { at: "root" as const }]),
  );
  const none: string[] = [];
  assert.equal(tierMatcher(plain, (pattern) => none.push(pattern))("/part63/a/posts/b"), "root");
  assert.deepEqual(none, []);
});

/** Of this process: the machine may be busy. */
function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
