import { strict as assert } from "node:assert";
import { assertCloneable } from "./cloneable.ts";

Deno.test("no value is too deep to be looked through, nor one that holds itself or a thing many times (CL2)", () => {
  let deep: unknown = new URL("http://x/");
  for (let i = 0; i < 200_000; i++) deep = i % 2 === 0 ? [deep] : { in: deep };
  assert.throws(() => assertCloneable(deep), { code: "value_invalid" });
  const around: unknown[] = [];
  around.push(around, new Map([[around, { around }]]));
  assertCloneable(around);
  let often: unknown = [];
  for (let i = 0; i < 100; i++) often = [often, often];
  assertCloneable(often);
});
