/** Sealed secrets against the vectors of docs/protocol/secrets.md, which sealed_secrets.py makes by itself. */
import assert from "node:assert/strict";
import { z } from "zod";
import { SecretRing } from "../../runtime/secrets/mod.ts";
import { runPython, storedVectors } from "./python.ts";

const vectors = z.strictObject({
  secrets: z.tuple([z.string(), z.string()]),
  sealed: z.array(z.strictObject({
    says: z.string(),
    app: z.string(),
    name: z.string(),
    value: z.string(),
    iv: z.string(),
    key: z.number(),
    sealed: z.string(),
  })).min(5),
}).parse(JSON.parse(await storedVectors("sealed_secrets.json")));

const [newest, older] = vectors.secrets.map((hex) => Uint8Array.fromHex(hex));
assert(newest !== undefined && older !== undefined);
const text = (sealed: Uint8Array) => sealed.toBase64({ alphabet: "base64url", omitPadding: true });
const bytes = (sealed: string) => Uint8Array.fromBase64(sealed, { alphabet: "base64url" });

for (const { says, sealed, value, iv, key, ...place } of vectors.sealed) {
  Deno.test(`a sealed secret is that of the document: ${says}`, () => {
    const ring = new SecretRing([newest, older], () => Uint8Array.fromHex(iv));
    assert.deepEqual(ring.open(place, bytes(sealed)), { ok: true, value });
    assert.equal(ring.isCurrent(bytes(sealed)), key === 0);
    if (key === 0) assert.equal(text(ring.seal(place, value)), sealed);
    const others = [{ ...place, app: `${place.app}2` }, { ...place, name: `${place.name}2` }, {
      app: place.name,
      name: place.app,
    }];
    for (const other of others) {
      assert.equal(ring.open(other, bytes(sealed)).ok, false, JSON.stringify(other));
    }
  });
}

Deno.test("a sealed secret with any byte changed, or cut, does not open, and nothing throws", () => {
  const ring = new SecretRing([newest, older], (length) => new Uint8Array(length));
  const [{ sealed, value, ...place } = assert.fail("no vector")] = vectors.sealed;
  const whole = bytes(sealed);
  for (let at = 0; at < whole.length; at++) {
    const changed = whole.slice();
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(ring.open(place, changed).ok, false, `byte ${at}`);
    assert.equal(ring.open(place, whole.subarray(0, at)).ok, false, `cut at ${at}`);
  }
  const other = new SecretRing([older], (length) => new Uint8Array(length));
  const opened = other.open(place, whole);
  assert(!opened.ok && /no longer in the secret file/.test(opened.why));
  assert(!JSON.stringify(opened).includes(value));
});

Deno.test("the stored vectors are those of the program", async (t) => {
  const made = await runPython("sealed_secrets.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), vectors);
});
