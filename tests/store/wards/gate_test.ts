/** What lets an answer of a site with an owner leave (store/wards/source.ts, G1). */
import { strict as assert } from "node:assert";
import { packKey } from "../../../store/model/key.ts";
import { encodeMessage } from "../../../store/wire/message.ts";
import type { SiteReplica } from "../../../store/replica.ts";
import type { Warded } from "../../../store/wire/ward_message.ts";
import { Tree } from "../owners/tree.ts";

/** Of e1, owned by e2, cut off from it and the root: a write that waits, and what has become of it. */
async function waiting(): Promise<{ tree: Tree; e1: SiteReplica; said: Warded; outcome: () => string }> {
  const tree = new Tree();
  await tree.start("root", null);
  const [e1] = [await tree.start("e1", null), await tree.start("e2", null)];
  assert.ok(await tree.world.run(20_000, () => e1.status().wards.owners.length === 1));
  await tree.pass(2_000);
  assert.deepEqual(e1.status().wards.owners, ["e2"]);
  for (const other of ["root", "e2"]) tree.network.partition("e1", other, Infinity);
  await tree.pass(50);
  const session = await e1.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  let outcome = "waits";
  session.durable().then(() => outcome = "left", (error) => outcome = String(error.code));
  await tree.pass(50);
  const { replica, position } = e1.status();
  const said: Warded = { kind: "warded", replica, config: 1, settled: true, position, refused: "none" };
  return { tree, e1, said, outcome: () => outcome };
}

Deno.test("an answer leaves when its owner has said that it has it, of this incarnation and configuration", async () => {
  const { tree, e1, said, outcome } = await waiting();
  const config = 9;
  for (
    const [from, other] of [
      ["e2", { ...said, replica: said.replica + 1 }],
      ["e2", { ...said, position: said.position - 1 }],
      ["e2", { ...said, refused: "full" }],
      ["e2", { ...said, refused: "older" }],
      ["e3", said],
      ["e3", { ...said, config }],
    ] as const
  ) {
    e1.receive(from, encodeMessage(other));
    await tree.pass(20);
    assert.equal(outcome(), "waits", JSON.stringify([from, other]));
  }
  e1.receive("e2", encodeMessage(said));
  await tree.pass(20);
  assert.equal(outcome(), "left");
});

Deno.test("an answer whose owner says nothing fails", async () => {
  const { tree, outcome } = await waiting();
  await tree.pass(3_000);
  assert.equal(outcome(), "owners_unreachable");
});

Deno.test("with acknowledge, answers leave without owners after the wait, and wait again when owners have it all (O6)", async () => {
  const { tree, e1, outcome } = await waiting();
  const configured = e1.owners.configure({ ...e1.owners.settings, unreachable: "acknowledge" });
  await tree.pass(1_500);
  await configured;
  assert.deepEqual([outcome(), e1.status().wards.isAlone], ["waits", false]);
  await tree.pass(1_000);
  assert.deepEqual([outcome(), e1.status().wards.isAlone], ["left", true]);
  assert.equal(tree.notes.filter((note) => note.startsWith("owners_unreachable")).length, 1);
  const write = async (ms: number) => {
    const session = await e1.attach(null);
    await session.write([{ kind: "set", key: packKey(["y"]), value: new Uint8Array(1) }]);
    let left = false;
    session.durable().then(() => left = true);
    await tree.pass(ms);
    return left;
  };
  assert.equal(await write(20), true, "those after it do not wait");
  tree.network.heal();
  assert.ok(await tree.world.run(tree.world.nowMs + 20_000, () => !e1.status().wards.isAlone));
  await tree.pass(2_000);
  for (const other of ["root", "e2", "e3"]) tree.network.partition("e1", other, Infinity);
  await tree.pass(50);
  assert.equal(await write(500), false, "its owner is waited for again");
});
