import { strict as assert } from "node:assert";
import type { TokenState } from "../../store/api/api.ts";
import { deriveKeyRing, openToken, sealToken } from "../../store/session/token.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { SessionTokens, wantsCookie } from "./session_tokens.ts";

const DAY_MS = 24 * 60 * 60_000;
const START_MS = Date.UTC(2026, 0, 1);

function tokensAt(clock: { nowMs: number }) {
  const ring = deriveKeyRing([new Uint8Array(32).fill(7)]);
  let opened = 0;
  const random = { bytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)) };
  const tokens = new SessionTokens({
    seal: (state) => sealToken(state, ring, { nowMs: clock.nowMs, random }),
    open: (text) => {
      opened++;
      return openToken(text, ring, clock.nowMs);
    },
  }, () => clock.nowMs);
  return { tokens, opened: () => opened };
}

const state = (more: Partial<TokenState> = {}): TokenState => ({
  session: new Uint8Array(16).fill(1),
  sequence: 3,
  replica: 2,
  clock: 1000,
  path: [5, null],
  open: false,
  ...more,
});

Deno.test("a state that says nothing new keeps its text (TK2)", () => {
  const clock = { nowMs: START_MS };
  const { tokens } = tokensAt(clock);
  const first = tokens.seal(state(), []);
  assert.equal(first.changed, true);
  const presented = tokens.open([first.text]);
  assert.deepEqual(tokens.seal(state({ sequence: 4 }), presented), { text: first.text, changed: false });
  const changes: Partial<TokenState>[] = [
    { clock: 1001 },
    { replica: 3 },
    { open: true },
    { path: [5, 6] },
    { path: [5] },
    { session: new Uint8Array(16).fill(2) },
  ];
  for (const change of changes) {
    assert.equal(tokens.seal(state(change), presented).changed, true, JSON.stringify(change));
  }
  clock.nowMs += DAY_MS + 1;
  assert.equal(tokens.seal(state(), presented).changed, true, "an old token is renewed");
});

Deno.test("opening again soon costs nothing, and expiry is noticed", () => {
  const clock = { nowMs: START_MS };
  const { tokens, opened } = tokensAt(clock);
  const { text } = tokens.seal(state(), []);
  for (let i = 0; i < 5; i++) tokens.open([text]);
  assert.equal(opened(), 0, "it was sealed here");
  clock.nowMs += 11_000;
  for (let i = 0; i < 5; i++) tokens.open([text]);
  assert.equal(opened(), 1);
  clock.nowMs += 31 * DAY_MS;
  assert.throws(
    () => tokens.open([text]),
    (error) => error instanceof Problem && error.code === "token_expired",
  );
});

Deno.test("tokens that do not open are refused by code (TK1)", () => {
  const { tokens } = tokensAt({ nowMs: START_MS });
  const { text } = tokens.seal(state(), []);
  const rows = [
    [["x"], "token_malformed"],
    [[""], "token_malformed"],
    [["x".repeat(5000)], "token_oversized"],
    [[text, text.slice(0, -2) + (text.endsWith("AA") ? "BB" : "AA")], "token_forged"],
    [Array.from({ length: 9 }, () => text), "token_oversized"],
  ] as const;
  for (const [texts, code] of rows) {
    assert.throws(() => tokens.open(texts), (error) => error instanceof Problem && error.code === code, code);
  }
});

Deno.test("a token becomes a cookie where the client keeps cookies, and never from a query or another site's page", () => {
  const wants = (tokenFrom: string, tokens: string[], token: string, isCrossSite = false) =>
    wantsCookie({ tokenFrom, tokens, isCrossSite }, token);
  assert.equal(wants("none", [], "new"), true);
  assert.equal(wants("cookie", ["old"], "new"), true);
  assert.equal(wants("cookie", ["old"], "old"), false);
  assert.equal(wants("header", ["old"], "new"), false);
  assert.equal(wants("query", ["old"], "new"), false);
  assert.equal(wants("none", [], "new", true), false);
});
