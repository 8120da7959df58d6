import { strict as assert } from "node:assert";
import fc from "fast-check";
import { clearedCookie, isCrossSite, sessionCookie, setsOurCookie, splitCookie } from "./cookies.ts";

/** A browser's reading of a `Set-Cookie` (RFC 6265bis, 5.6), and what it sends for it: null where it keeps nothing. */
function sentFor(header: string): string | null {
  // deno-lint-ignore no-control-regex -- as the draft has it
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(header)) return null;
  const [pair = ""] = header.split(";");
  const at = pair.indexOf("=");
  const trim = (text: string) => text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");
  const [name, value] = at < 0 ? ["", trim(pair)] : [trim(pair.slice(0, at)), trim(pair.slice(at + 1))];
  if (name === "" && value === "") return null;
  return name === "" ? value : `${name}=${value}`;
}

Deno.test("whatever an app sets and a browser keeps, nothing of it is read as the session's cookie (CK2)", () => {
  const piece = fc.constantFrom(
    ...'sojourn_session __Host-sojourn_session __host-Sojourn_Session = = ; x a=b , " _ - Path=/'.split(" "),
    " ",
    "\t",
    "\u00a0",
    "\u000b",
  );
  let read = 0;
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 7 }), (pieces) => {
      const header = pieces.join("");
      const sent = sentFor(header);
      if (sent === null) return;
      const { plain, secure } = splitCookie(`before=1; ${sent}; after=2`);
      if (plain === null && secure === null) return;
      read++;
      assert.ok(setsOurCookie(header), JSON.stringify(header));
    }),
    { numRuns: 20_000, seed: 3 },
  );
  assert.ok(read > 200, `${read} of them would have been read`);
});

Deno.test("an app's own cookies stay, as they are", () => {
  for (
    const own of [
      "a=b",
      "my_sojourn_session=x",
      "sojourn_sessions=x",
      "x",
      "=x",
      "a=sojourn_session",
      "a=sojourn_session=x",
    ]
  ) {
    assert.equal(setsOurCookie(`${own}; Path=/`), false, own);
    assert.deepEqual(splitCookie(own), { plain: null, secure: null, rest: own });
  }
});

Deno.test("both cookies are taken out, whichever is read, and the odd spellings of them", () => {
  const rows: [string, string | null, string | null, string][] = [
    ["a=1; sojourn_session=x; b=2", "x", null, "a=1; b=2"],
    ["__Host-sojourn_session=y; sojourn_session=x", "x", "y", ""],
    ["sojourn_session =x;b=2", "x", null, "b=2"],
    ["sojourn_session; a=1", null, null, "a=1"],
    ["__host-sojourn_session=x; a=1", null, null, "a=1"],
    ["=sojourn_session=x; a=1", null, null, "a=1"],
    ["\u00a0sojourn_session=x", null, null, "\u00a0sojourn_session=x"],
  ];
  for (const [value, plain, secure, rest] of rows) {
    assert.deepEqual(splitCookie(value), { plain, secure, rest }, value);
  }
});

Deno.test("over https the cookie has the name that browsers take from this host only (CK1)", () => {
  assert.match(
    sessionCookie("t", true),
    /^__Host-sojourn_session=t; HttpOnly; SameSite=Lax; Path=\/; .*; Secure$/,
  );
  assert.match(
    sessionCookie("t", false),
    /^sojourn_session=t; HttpOnly; SameSite=Lax; Path=\/; Max-Age=\d+$/,
  );
  assert.match(clearedCookie(true), /^__Host-sojourn_session=; .*Max-Age=0; Secure$/);
  assert.doesNotMatch(sessionCookie("t", true), /Domain/i);
});

Deno.test("what another site's page had sent is told by the browser's own headers (CK3)", () => {
  const of = (method: string, fetchSite: string | null, origin: string | null) =>
    isCrossSite({ method, fetchSite, origin, host: "shop.example:8443" });
  const rows: [boolean, string, string | null, string | null][] = [
    [true, "POST", "cross-site", "https://evil.example"],
    [true, "POST", "cross-site", null],
    [true, "POST", null, "https://evil.example"],
    [true, "POST", null, "null"],
    [true, "PUT", null, "https://shop.example"],
    [false, "POST", null, "https://shop.example:8443"],
    [false, "POST", null, null],
    [false, "POST", "same-site", "https://www.shop.example"],
    [false, "POST", "same-origin", "https://shop.example:8443"],
    [false, "GET", "cross-site", null],
    [false, "HEAD", "cross-site", null],
  ];
  for (const [expected, method, site, origin] of rows) {
    assert.equal(of(method, site, origin), expected, `${method} ${site} ${origin}`);
  }
});
