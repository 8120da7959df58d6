import { strict as assert } from "node:assert";
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

Deno.test("tierMatcher says what URLPattern says when a path is plain, odd or hostile", () => {
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
