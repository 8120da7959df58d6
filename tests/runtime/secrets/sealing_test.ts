import assert from "node:assert/strict";
import { SecretRing } from "../../../runtime/secrets/sealing.ts";

const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
const PLACE = { app: "shop", name: "KEY" };

Deno.test("a sealed value opens as the secret that it was sealed for, as no other one, and whole (sealing.ts E1)", () => {
  const ring = new SecretRing([random(32)], random);
  const sealed = ring.seal(PLACE, "välue");
  assert.deepEqual(ring.open(PLACE, sealed), { ok: true, value: "välue" });
  for (
    const place of [{ ...PLACE, name: "KEY2" }, { ...PLACE, app: "shop2" }, { app: "sho", name: "pKEY" }]
  ) {
    assert.equal(ring.open(place, sealed).ok, false, JSON.stringify(place));
  }
  for (let at = 0; at < sealed.length; at++) {
    const altered = Uint8Array.from(sealed, (byte, i) => i === at ? byte ^ 1 : byte);
    assert.equal(ring.open(PLACE, altered).ok, false, `byte ${at}`);
    assert.equal(ring.open(PLACE, sealed.subarray(0, at)).ok, false, `cut at ${at}`);
  }
});

Deno.test("the newest secret of a cluster seals, all that it has open, and one that is gone is named as why (sealing.ts E2)", () => {
  const [old, next] = [random(32), random(32)];
  const before = new SecretRing([old], random), both = new SecretRing([next, old], random);
  const after = new SecretRing([next], random);
  const first = before.seal(PLACE, "one"), second = both.seal(PLACE, "two");
  assert.deepEqual([both.isCurrent(first), both.isCurrent(second)], [false, true]);
  assert.deepEqual(both.open(PLACE, first), { ok: true, value: "one" });
  assert.deepEqual(after.open(PLACE, second), { ok: true, value: "two" });
  const refused = after.open(PLACE, first);
  assert.match(refused.ok ? "" : refused.why, /no longer in the secret file/);
});
