/** Some damages of the suite (suite.ts), and that it can fail. */
import { strict as assert } from "node:assert";
import { Client, Model } from "./model.ts";
import { suite } from "./suite.ts";

/** As many as two pasts have, one with owners and one without. */
const DAMAGES = 40;

Deno.test("files of sites that are cut, flipped, zeroed, removed or older are nobody's wrong answer", async () => {
  const { damages, findings, answers, refusals } = await suite({ damages: DAMAGES, seed: 7 });
  assert.deepEqual(findings, []);
  assert.equal(damages, DAMAGES);
  for (const what of ["read: answered", "list: answered", "session: answered", "outcome: answered"]) {
    assert.ok((answers[what] ?? 0) > DAMAGES, `${what}: ${JSON.stringify(answers)}`);
  }
  assert.ok(Object.keys(refusals).length > 0, "some disks are refused");
});

Deno.test("the model of a damage tells what nobody wrote, what is older, and what lacks its cause", () => {
  const model = new Model(), ann = new Client("ann"), bob = new Client("bob");
  const token = { session: new Uint8Array(16), sequence: 0, replica: 1, clock: 1, path: [1], open: false };
  const written = (client: Client, key: string) => {
    const { text, index } = model.begin(client, key, 0);
    model.acknowledged(client, key, index, token);
    return text;
  };
  const [first, second] = [written(ann, "a"), written(ann, "a")];
  bob.takes(token, model.shows(bob, new Map([["a", second]])));
  const effect = written(bob, "b");
  const nobody = new Client("nobody"), cat = new Client("cat");
  cat.takes(token, model.shows(cat, new Map([["b", effect]])));
  const wrong = (client: Client, rows: Record<string, string | null>, isCausal?: boolean) =>
    model.shows(client, new Map(Object.entries(rows)), isCausal).wrong;
  assert.deepEqual(wrong(ann, { a: second, b: effect }), []);
  assert.deepEqual(wrong(nobody, { a: first, b: null }), []);
  assert.match(wrong(ann, { a: first })[0] ?? "", /a is value 0, and value 1 was seen before/);
  assert.match(wrong(ann, { a: null })[0] ?? "", /a is value -1, and value 1 was seen before/);
  assert.match(wrong(nobody, { a: "garbage" })[0] ?? "", /which nobody wrote/);
  assert.match(wrong(nobody, { a: first, b: effect })[0] ?? "", /beside it stands what was written after/);
  assert.match(wrong(cat, { a: first })[0] ?? "", /a is value 0, and value 1 was seen before/);
  assert.deepEqual(wrong(cat, { a: first }, false), [], "an effect that has outlived its cause");
  assert.match(wrong(ann, { a: first }, false)[0] ?? "", /a is value 0, and value 1 was seen before/);
  assert.equal(model.last("a"), 1);
});
