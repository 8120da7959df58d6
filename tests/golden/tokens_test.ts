/** Session tokens against the vectors of docs/protocol/tokens.md, which tests/golden/tokens.py makes by itself. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { z } from "zod";
import type { TokenState } from "../../store/api/api.ts";
import { pathNaming } from "../../store/api/token_path.ts";
import { deriveKeyRing, openToken, sealToken, sessionIdOf } from "../../store/session/token.ts";
import { Draws } from "../sim/random.ts";
import { runPython, storedVectors } from "./python.ts";

const State = z.strictObject({
  session: z.string(),
  sequence: z.number(),
  replica: z.number(),
  clock: z.number(),
  path: z.array(z.number().nullable()),
  followed: z.array(z.number()).exactOptional(),
  open: z.boolean(),
});
const Vectors = z.strictObject({
  secrets: z.array(z.string()),
  fingerprint: z.string(),
  tokens: z.array(z.strictObject({
    name: z.string(),
    state: State,
    issuedS: z.number(),
    lifetimeS: z.number(),
    iv: z.string(),
    token: z.string(),
  })),
  sessionIds: z.array(z.strictObject({ session: z.string(), app: z.string(), id: z.string() })),
});
const Opened = z.array(State.extend({ issuedS: z.number(), lifetimeS: z.number() }).nullable());

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));
const stateOf = (vector: z.infer<typeof State>): TokenState => ({
  ...vector,
  session: bytes(vector.session),
});

const vectors = Vectors.parse(JSON.parse(await storedVectors("tokens.json")));
const ring = deriveKeyRing(vectors.secrets.map(bytes));

Deno.test("golden tokens: each is sealed to the same text, and opens to the same state", () => {
  assert.equal(Buffer.from(ring.fingerprint).toString("hex"), vectors.fingerprint);
  for (const { name, state, issuedS, lifetimeS, iv, token } of vectors.tokens) {
    const random = { bytes: () => bytes(iv) };
    const options = { nowMs: issuedS * 1000 + 999, random, lifetimeMs: lifetimeS * 1000 };
    assert.equal(sealToken(stateOf(state), ring, options), token, name);
    const opened = openToken(token, ring, issuedS * 1000);
    assert.ok(opened.ok, name);
    assert.deepEqual(opened.token, stateOf(state), name);
    assert.deepEqual(
      [opened.issuedMs, opened.expiresMs],
      [issuedS * 1000, (issuedS + lifetimeS) * 1000],
      name,
    );
  }
});

Deno.test("golden tokens: the ids by which apps know a session", () => {
  for (const { session, app, id } of vectors.sessionIds) assert.equal(sessionIdOf(bytes(session), app), id);
});

Deno.test("golden tokens: the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("tokens.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(Vectors.parse(JSON.parse(made)), vectors);
});

Deno.test("golden tokens: the independent implementation opens what sealToken seals", async (t) => {
  const draws = new Draws("golden tokens");
  const random = { bytes: (length: number) => Uint8Array.from({ length }, () => draws.integer(0, 255)) };
  const states = Array.from({ length: 40 }, (): TokenState => ({
    session: random.bytes(16),
    sequence: draws.integer(0, 2 ** draws.integer(0, 52)),
    replica: draws.integer(1, 2 ** 24 - 1),
    clock: draws.integer(0, 2 ** draws.integer(0, 52)),
    ...pathNaming(Array.from({ length: draws.integer(0, 12) }, () => ({
      position: draws.unit() < 0.2 ? 0 : draws.integer(0, 2 ** draws.integer(0, 52)),
      isPending: draws.unit() < 0.2,
    }))),
    open: draws.unit() < 0.5,
  }));
  const nowMs = Date.UTC(2027, 3, 5, 6, 7, 8);
  const tokens = states.map((state) => sealToken(state, ring, { nowMs, random, lifetimeMs: 3_600_000 }));
  const answer = await runPython(
    "tokens.py",
    ["--open"],
    JSON.stringify({ secrets: vectors.secrets, tokens }),
  );
  if (answer === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  const expected = states.map((state) => ({
    ...state,
    session: Buffer.from(state.session).toString("hex"),
    issuedS: nowMs / 1000,
    lifetimeS: 3600,
  }));
  assert.deepEqual(Opened.parse(JSON.parse(answer)), expected);
});
