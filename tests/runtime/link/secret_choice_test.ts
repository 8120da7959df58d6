import { strict as assert } from "node:assert";
import { SecretChoice } from "../../../runtime/link/secret_choice.ts";

const [OLD, NEW, NEXT] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];

Deno.test("a site that went away is shown the next secret, each in its turn, until one was right (SX1)", () => {
  const choice = new SecretChoice([OLD, NEW, NEXT]);
  assert.deepEqual([1, 2, 3, 4].map(() => choice.next("edge")), [OLD, NEW, NEXT, OLD]);
  assert.equal(choice.next("other"), OLD, "each site has its own turn");
  assert.equal(choice.next("edge"), NEW);
  choice.proved("edge");
  assert.deepEqual([choice.next("edge"), choice.next("edge")], [NEW, NEXT], "once more, and then the next");
});

Deno.test("however many names strangers make up, those of long ago are forgotten (SX2)", () => {
  const choice = new SecretChoice([OLD, NEW]);
  choice.next("early");
  choice.next("again");
  for (let i = 0; i < 2_000; i++) {
    choice.next(`stranger ${i}`);
    if (i === 1_000) choice.next("again");
  }
  assert.equal(choice.next("again"), OLD, "it is remembered: this is its third time");
  assert.equal(choice.next("early"), OLD, "it is forgotten: this is its first");
});
