import assert from "node:assert/strict";
import fc from "fast-check";
import { Buffer } from "node:buffer";
import type { TokenState } from "../api/api.ts";
import { type Named, pathNaming } from "../api/token_path.ts";
import type { Random } from "../model/ports.ts";
import { CLOCK_EPOCH_MS } from "../model/row.ts";
import {
  deriveKeyRing,
  type OpenedToken,
  openToken,
  sealToken,
  sessionIdOf,
  TOKEN_CHARS_MAX,
  TOKEN_LIFETIME_MS,
  TOKEN_PATH_MAX,
} from "./token.ts";

const NOW_MS = Date.UTC(2026, 5, 1, 12, 30, 15, 250);
const secret = (fill: number) => new Uint8Array(32).fill(fill);
const ring = deriveKeyRing([secret(1)]);
const random: Random = { bytes: (length) => crypto.getRandomValues(new Uint8Array(length)) };
const options = { nowMs: NOW_MS, random };

const state = (more: Partial<TokenState> = {}): TokenState => ({
  session: new Uint8Array(16).fill(9),
  sequence: 3,
  replica: 12,
  clock: 2 ** 40,
  path: [100, null, 7],
  open: false,
  ...more,
});

const code = (opened: OpenedToken) => opened.ok ? "ok" : opened.code;
const sealed = sealToken(state(), ring, options);

const integer = fc.maxSafeNat();
const named: fc.Arbitrary<Named> = fc.record({
  position: fc.maxSafeNat().map((n) => Math.min(n, Number.MAX_SAFE_INTEGER - 1)),
  isPending: fc.boolean(),
});
const states: fc.Arbitrary<TokenState> = fc.record({
  session: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  sequence: integer,
  replica: fc.nat(2 ** 24 - 1),
  clock: integer,
  path: fc.array(fc.oneof(named, fc.constant({ position: 0, isPending: true })), {
    maxLength: TOKEN_PATH_MAX,
  }),
  open: fc.boolean(),
}).map(({ path, ...others }) => ({ ...others, ...pathNaming(path) }));

Deno.test("openToken gives back what sealToken took, in at most 256 characters fit for a cookie", () => {
  fc.assert(fc.property(states, (token) => {
    const text = sealToken(token, ring, options);
    assert.ok(text.length <= TOKEN_CHARS_MAX, `${text.length} characters`);
    assert.match(text, /^[A-Za-z0-9_-]+$/);
    const opened = openToken(text, ring, NOW_MS);
    assert.deepEqual(opened.ok && opened.token, { ...token, path: [...token.path] });
  }));
});

Deno.test("a token has at most 256 characters at the deepest path and the largest numbers", () => {
  const most = Number.MAX_SAFE_INTEGER;
  for (const isPending of [false, true]) {
    const path = pathNaming(
      Array.from({ length: TOKEN_PATH_MAX }, () => ({ position: most - 1, isPending })),
    );
    const token = state({ replica: 2 ** 24 - 1, sequence: most, clock: most, ...path });
    const text = sealToken(token, ring, options);
    assert.ok(text.length <= TOKEN_CHARS_MAX, `${text.length} characters`);
    assert.equal(code(openToken(text, ring, NOW_MS)), "ok");
  }
});

Deno.test("a token of a four-level tree has the same length at any number of sites and operations of one size", () => {
  const at = (replica: number) =>
    sealToken(state({ replica, path: [1e6, 2e6, 3e6, 4e6] }), ring, options).length;
  assert.equal(at(5), at(2 ** 24 - 1));
});

Deno.test("two seals of one state differ, and neither shows the session (T4)", () => {
  const other = sealToken(state(), ring, options);
  assert.notEqual(sealed, other);
  assert.ok(!Buffer.from(sealed, "base64url").includes(Buffer.alloc(8, 9)));
});

Deno.test("a text as long as a token may be is looked at, a longer one is not", () => {
  assert.equal(code(openToken("A".repeat(TOKEN_CHARS_MAX), ring, NOW_MS)), "token_malformed");
  assert.equal(code(openToken("A".repeat(TOKEN_CHARS_MAX + 1), ring, NOW_MS)), "token_oversized");
});

Deno.test("openToken refuses by code", () => {
  const foreign = deriveKeyRing([secret(2)]);
  const bytes = Buffer.from(sealed, "base64url");
  const altered = (at: number, value = (bytes[at] ?? 0) ^ 1) => {
    const copy = Buffer.from(bytes);
    copy[at] = value;
    return copy.toString("base64url");
  };
  const cases: [string, string, string][] = [
    ["the token itself", sealed, "ok"],
    ["nothing", "", "token_malformed"],
    ["a word", "hello", "token_malformed"],
    ["text beyond ASCII", "é".repeat(100), "token_malformed"],
    ["a token cut at a whole byte", sealed.slice(0, -4), "token_forged"],
    ["a token cut short", sealed.slice(0, 60), "token_malformed"],
    ["a padded token", sealed + "=", "token_malformed"],
    ["a token with a space", ` ${sealed}`, "token_malformed"],
    ["another format", altered(0, 3), "token_malformed"],
    ["the other form of a path", altered(0, 2), "token_forged"],
    ["another cluster's", sealToken(state(), foreign, options), "token_foreign"],
    ["another key's id", altered(9), "token_expired"],
    ["another replica", altered(15), "token_forged"],
    ["another day", altered(17), "token_forged"],
    ["another IV", altered(18), "token_forged"],
    ["another body", altered(30), "token_forged"],
    ["another tag", altered(bytes.length - 1), "token_forged"],
    ["a byte more", Buffer.concat([bytes, Buffer.of(0)]).toString("base64url"), "token_forged"],
    ["a long text", "A".repeat(TOKEN_CHARS_MAX + 1), "token_oversized"],
    ["a very long text", "A".repeat(1 << 20), "token_oversized"],
  ];
  for (const [what, text, expected] of cases) {
    assert.equal(code(openToken(text, ring, NOW_MS)), expected, what);
  }
});

Deno.test("a token has one text only: stray bits in the last character are refused (T1)", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (const path of [[1], [1, 2], [1, 2, 3]]) {
    const text = sealToken(state({ path }), ring, options);
    const twins = [...alphabet].map((last) => text.slice(0, -1) + last);
    assert.deepEqual(twins.filter((twin) => openToken(twin, ring, NOW_MS).ok), [text]);
  }
});

Deno.test("a token expires after its lifetime, counted in whole seconds", () => {
  const issuedMs = NOW_MS - NOW_MS % 1000;
  assert.equal(code(openToken(sealed, ring, issuedMs + TOKEN_LIFETIME_MS - 1)), "ok");
  assert.equal(code(openToken(sealed, ring, issuedMs + TOKEN_LIFETIME_MS)), "token_expired");
  const short = sealToken(state(), ring, { ...options, lifetimeMs: 1500 });
  assert.equal(code(openToken(short, ring, issuedMs + 1999)), "ok");
  assert.equal(code(openToken(short, ring, issuedMs + 2000)), "token_expired");
});

Deno.test("a token expires as long after its issue on any day, and at any time of it", () => {
  for (const issuedMs of [0, 1, 500, 5_000].map((days) => CLOCK_EPOCH_MS + days * 86_400_000 + 43_210_000)) {
    const text = sealToken(state(), ring, { ...options, nowMs: issuedMs });
    assert.equal(code(openToken(text, ring, issuedMs + TOKEN_LIFETIME_MS - 1)), "ok");
    assert.equal(code(openToken(text, ring, issuedMs + TOKEN_LIFETIME_MS)), "token_expired");
  }
});

Deno.test("rotation: old tokens open until their secret is removed, new ones are sealed under the new secret", () => {
  const both = deriveKeyRing([secret(3), secret(1)]);
  assert.equal(code(openToken(sealed, both, NOW_MS)), "ok");
  const renewed = sealToken(state(), both, options);
  assert.equal(code(openToken(renewed, ring, NOW_MS)), "token_expired", "the old ring has no such key");
  const after = deriveKeyRing([secret(3)], both.fingerprint);
  assert.equal(code(openToken(renewed, after, NOW_MS)), "ok");
  assert.equal(code(openToken(sealed, after, NOW_MS)), "token_expired");
});

Deno.test("deriveKeyRing refuses no secret, a short one, and two equal ones", () => {
  assert.throws(() => deriveKeyRing([]), RangeError);
  assert.throws(() => deriveKeyRing([new Uint8Array(15)]), /at least 16 bytes, not 15/);
  assert.throws(() => deriveKeyRing([secret(1), secret(1)]), /equal/);
});

Deno.test("sealToken refuses what no token can hold", () => {
  assert.throws(
    () => sealToken(state({ path: Array(TOKEN_PATH_MAX + 1).fill(1) }), ring, options),
    RangeError,
  );
  assert.throws(() => sealToken(state({ session: new Uint8Array(15) }), ring, options), RangeError);
});

Deno.test("sessionIdOf differs per app and per session, and stays", () => {
  const session = new Uint8Array(16).fill(4);
  const ids = [sessionIdOf(session, "a"), sessionIdOf(session, "b"), sessionIdOf(new Uint8Array(16), "a")];
  assert.equal(new Set(ids).size, 3);
  assert.equal(ids[0], sessionIdOf(session, "a"));
  for (const id of ids) assert.match(id, /^[A-Za-z0-9_-]{22}$/);
});

/** One altered text, by one of the ways in which tokens get altered. */
function mutate(text: string, other: string, draw: (below: number) => number): string {
  const at = draw(text.length);
  const bytes = Buffer.from(text, "base64url");
  switch (draw(9)) {
    case 0: { // one bit
      const index = draw(bytes.length);
      bytes[index] = (bytes[index] ?? 0) ^ (1 << draw(8));
      return bytes.toString("base64url");
    }
    case 1: // some bytes
      for (let left = 1 + draw(8); left > 0; left--) bytes[draw(bytes.length)] = draw(256);
      return bytes.toString("base64url");
    case 2: // cut at either end
      return draw(2) === 0 ? text.slice(0, at) : text.slice(at);
    case 3: // longer
      return text + Buffer.from(Array.from({ length: 1 + draw(160) }, () => draw(256))).toString("base64url");
    case 4: // parts of two tokens
      return text.slice(0, at) + other.slice(at);
    case 5: // one character of any alphabet
      return text.slice(0, at) + String.fromCharCode(draw(4) === 0 ? draw(65_536) : draw(256)) +
        text.slice(at + 1);
    case 6: // a piece twice, or left out
      return text.slice(0, at) + text.slice(draw(text.length));
    case 7: // another encoding of the same bytes
      return [
        bytes.toString("base64"),
        bytes.toString("hex"),
        text + "=",
        text + "\n",
        `"${text}"`,
      ][draw(5)] ?? "";
    default: // the right header, then anything
      return Buffer.concat([
        bytes.subarray(0, 18 + draw(13)),
        Buffer.from(Array.from({ length: draw(140) }, () => draw(256))),
      ]).toString("base64url");
  }
}

Deno.test("no altered token is accepted and none makes openToken throw (T1, T2)", () => {
  const rounds = Number(Deno.env.get("SOJOURN_FUZZ_TOKENS") ?? 50_000);
  let seed = 20260601;
  const draw = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(seed / 2 ** 32 * below);
  };
  const genuine = Array.from(
    { length: 40 },
    (_, i) =>
      sealToken(
        state({ sequence: i * 1000, path: Array(i % 6).fill(i * 77_777), open: i % 2 === 0 }),
        ring,
        options,
      ),
  );
  const known = new Set(genuine);
  const refusals = new Map<string, number>();
  for (let round = 0; round < rounds; round++) {
    const text = mutate(genuine[draw(40)] ?? "", genuine[draw(40)] ?? "", draw);
    const opened = openToken(text, ring, NOW_MS);
    assert.equal(opened.ok, known.has(text), `round ${round}: ${JSON.stringify(text)}`);
    refusals.set(code(opened), (refusals.get(code(opened)) ?? 0) + 1);
  }
  for (
    const expected of ["token_malformed", "token_forged", "token_foreign", "token_expired", "token_oversized"]
  ) {
    assert.ok((refusals.get(expected) ?? 0) > 0, `no mutation was refused as ${expected}`);
  }
});
