/** Some thousand changed inputs for everything that reads outside data, and that the fuzzer can fail. */
import { strict as assert } from "node:assert";
import { Dice, mutateBytes, mutateJson } from "./dice.ts";
import { fuzz, TARGETS } from "./run.ts";
import { Finding, jsonAttempt, type Target } from "./target.ts";

for (const target of TARGETS) {
  Deno.test(`${target.name}: ${target.says}`, async () => {
    const { findings, outcomes } = await fuzz(target, { mutations: target.quick, seed: 1 });
    assert.deepEqual(findings, []);
    for (const label of target.reaches) assert.ok((outcomes[label] ?? 0) > 0, `${label} was not reached`);
  });
}

const target = (attempt: Target["open"]): Target => ({
  name: "made up",
  says: "nothing",
  reaches: [],
  quick: 1,
  open: attempt,
});

Deno.test("fuzz reports what accepts, what crashes and what hangs on to the machine, each by its number", async () => {
  const shows = async (attempt: (dice: Dice) => string | Promise<string>) =>
    (await fuzz(target(() => ({ attempt })), { mutations: 300, seed: 7 })).findings;
  const accepts = (dice: Dice) => {
    if (dice.below(100) === 0) throw new Finding("accepted");
    return "refused";
  };
  const found = await shows(accepts);
  assert.ok(found.length > 0 && found.length < 20, `${found.length}`);
  for (const { at, message } of found) {
    assert.equal(message, "Finding: accepted");
    const again = await fuzz(target(() => ({ attempt: accepts })), { mutations: 1, seed: 7, from: at });
    assert.equal(again.findings.length, 1, "its number repeats it");
  }
  const crashes = await shows((dice) =>
    dice.below(100) === 0 ? Promise.reject(new TypeError("x")) : "refused"
  );
  assert.match(crashes[0]?.message ?? "", /^TypeError: x/);
});

Deno.test("a JSON reader that loses something between reading and writing is found", () => {
  const refuse = () => "refused";
  assert.throws(
    () => jsonAttempt(() => ({ n: 1 }), (v) => ({ n: (v as { n: number }).n + 1 }), refuse),
    Finding,
  );
  assert.equal(jsonAttempt(() => ({ n: 1 }), (v) => v, refuse), "round-trips");
});

Deno.test("mutateBytes and mutateJson repeat themselves for their dice, and change what they get", () => {
  const bytes = new Uint8Array(40);
  const json = { a: [1, { b: "text" }], c: null };
  const kinds = new Set<string>();
  for (let at = 0; at < 500; at++) {
    const [one, two] = [Dice.of(3, at), Dice.of(3, at)];
    const mutant = mutateBytes(one, bytes);
    assert.deepEqual(mutant, mutateBytes(two, bytes));
    assert.notDeepEqual(mutant, bytes);
    try {
      kinds.add(JSON.stringify(mutateJson(one, json, json)));
    } catch (error) {
      assert.ok(error instanceof SyntaxError);
    }
  }
  assert.ok(kinds.size > 200, `only ${kinds.size} different ones`);
  assert.deepEqual(bytes, new Uint8Array(40));
  assert.deepEqual(json, { a: [1, { b: "text" }], c: null });
});
